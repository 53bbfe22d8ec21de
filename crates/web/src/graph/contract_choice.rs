//! The choice of a policy for plans that break outputs which others use, in the settings of organizations, projects and
//! workspaces.

use taco_graph_picture::words::ContractPolicy;

use crate::choice::Choice;

/// The policies, and before them the one that counts without a choice, if there is one above. `chosen` is empty for that.
pub(crate) fn offered(chosen: Option<&str>, inherited: Option<(&str, ContractPolicy)>) -> Vec<Choice> {
    let chosen = chosen.unwrap_or_default();
    let inherited = inherited.map(|(whose, policy)| Choice::new("", format!("{whose} ({})", name(policy)), chosen));
    let own = ContractPolicy::ALL.iter().map(|policy| Choice::new(policy, name(*policy), chosen));
    inherited.into_iter().chain(own).collect()
}

fn name(policy: ContractPolicy) -> &'static str {
    match policy {
        ContractPolicy::Off => "Say nothing",
        ContractPolicy::Warn => "Warn",
        ContractPolicy::Stop => "Stop for approval",
    }
}

/// What a form asks for: nothing, where it has no such field; the policy from above, where it is empty.
pub(crate) fn asked(sent: Option<&String>) -> Option<Option<String>> {
    sent.map(|word| Some(word.clone()).filter(|word| !word.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_without_the_field_changes_nothing() {
        assert_eq!(asked(None), None);
        assert_eq!(asked(Some(&String::new())), Some(None));
        assert_eq!(asked(Some(&"stop".to_owned())), Some(Some("stop".to_owned())));
    }

    #[test]
    fn what_is_inherited_is_chosen_where_nothing_is_set() {
        let offered = offered(None, Some(("Project default", ContractPolicy::Warn)));
        assert_eq!((offered[0].name.as_str(), offered[0].chosen, offered.len()), ("Project default (Warn)", true, 4));
    }
}
