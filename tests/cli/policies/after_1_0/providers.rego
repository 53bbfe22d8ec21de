# expect: failed 1
package corpus.providers

deny contains key if some key, _ in input.plan.configuration.provider_config
