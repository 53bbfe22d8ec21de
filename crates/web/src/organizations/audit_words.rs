//! Words for what the audit log tells.

/// Kinds of actions that the log can be limited to: word in addresses, name, and the actions or their nouns.
pub(crate) type Kind = (&'static str, &'static str, &'static [&'static str]);

pub(crate) const ORGANIZATION_KINDS: &[Kind] = &[
    ("runs", "Runs", &["run", "phase", "configuration", "task", "task-result"]),
    ("states", "States", &["state", "retention"]),
    ("secrets", "Reads of states, outputs and plans", &["state.read", "output", "plan"]),
    ("variables", "Variables and variable sets", &["variable", "variable-set", "binding"]),
    (
        "workspaces",
        "Workspaces",
        &[
            "workspace",
            "run-trigger",
            "tag",
            "reserved-tag-key",
            "notification-configuration",
            "notification",
            "run-task",
            "workspace-run-task",
        ],
    ),
    ("projects", "Projects", &["project"]),
    ("access", "Members, teams and their access", &["membership", "team", "team-project", "team-workspace"]),
    ("tokens", "Tokens and SSH keys", &["token", "ssh-key"]),
    ("vcs", "Version control", &["oauth-client", "oauth-token"]),
    ("agents", "Agents and pools", &["agent", "agent-pool"]),
    ("graph", "Dependencies and walks", &["dependency", "graph", "outputs", "walk"]),
    (
        "registry",
        "Modules and providers",
        &["registry-module", "module-version", "registry-provider", "provider-version", "provider-platform", "gpg-key"],
    ),
    ("organization", "Organization settings", &["organization"]),
];

pub(crate) const SITE_KINDS: &[Kind] = &[
    ("users", "Users", &["user", "site.claimed-author", "site.first-admin", "site.first-start"]),
    ("sessions", "Logins", &["session", "grant"]),
    ("tokens", "Tokens", &["token"]),
    ("organizations", "Organizations", &["organization"]),
];

/// What someone did, before the name of the thing. An action without a thing says all.
const DEEDS: &[(&str, &str)] = &[
    ("agent.connect", "connected"),
    ("agent.leave", "disconnected"),
    ("agent-pool.create", "created"),
    ("agent-pool.delete", "deleted"),
    ("agent-pool.update", "changed"),
    ("binding.create", "bound to an output:"),
    ("binding.delete", "removed the binding of"),
    ("configuration.announce", "started an upload of"),
    ("configuration.upload", "uploaded"),
    ("configuration.give-up", "gave up the upload of"),
    ("configuration.archive", "archived"),
    ("configuration.backing-data", "changed the data of"),
    ("dependency.acknowledge", "acknowledged"),
    ("dependency.declare", "declared"),
    ("dependency.delete", "removed"),
    ("dependency.update", "changed"),
    ("graph.echoes", "checked by echo"),
    ("graph.examine", "looked for what is used, and updated"),
    ("gpg-key.create", "added"),
    ("gpg-key.delete", "deleted"),
    ("grant.create", "approved a login from the command line"),
    ("grant.exchange", "logged in from the command line"),
    ("history.archive", "moved finished runs to history"),
    ("history.restore", "brought a run back from history"),
    ("history.sweep", "removed old history"),
    ("membership.accept", "accepted the invitation of"),
    ("membership.create", "invited"),
    ("membership.decline", "declined the invitation of"),
    ("membership.delete", "removed"),
    ("membership.renew-link", "created a new invitation link for"),
    ("membership.update", "changed the teams of"),
    ("oauth-client.apply", "changed the projects of"),
    ("oauth-client.create", "added"),
    ("oauth-client.delete", "deleted"),
    ("oauth-client.update", "changed"),
    ("oauth-token.delete", "deleted"),
    ("oauth-token.update", "changed the SSH key of"),
    ("module-version.create", "announced"),
    ("module-version.delete", "deleted"),
    ("module-version.deprecate", "changed the deprecation of"),
    ("module-version.upload", "uploaded"),
    ("notification-configuration.create", "created"),
    ("notification-configuration.delete", "deleted"),
    ("notification-configuration.update", "changed"),
    ("notification-configuration.verify", "tested"),
    ("notification.deliver", "sent a notification to"),
    ("organization.begin", "created"),
    ("organization.create", "created"),
    ("organization.delete", "deleted"),
    ("organization.rename", "renamed"),
    ("organization.retention", "changed the retention policy of"),
    ("organization.update", "changed the settings of"),
    ("output.read", "read sensitive outputs of"),
    ("output.reveal", "revealed a sensitive output of"),
    ("outputs.page", "moved old output commits to history, of"),
    ("outputs.take-in", "noted changed outputs, in"),
    ("phase.finish", "finished a phase of"),
    ("phase.lose", "lost the agent of"),
    ("phase.return", "queued again"),
    ("phase.take", "handed to an agent"),
    ("plan.read", "downloaded the full plan of"),
    ("project.create", "created"),
    ("project.delete", "deleted"),
    ("project.tag", "changed the tags of"),
    ("project.update", "changed"),
    ("policy.create", "created"),
    ("policy.delete", "deleted"),
    ("policy.update", "changed"),
    ("policy.upload", "uploaded the code of"),
    ("policy-parameter.create", "added"),
    ("policy-parameter.delete", "deleted"),
    ("policy-parameter.update", "changed"),
    ("policy-set.apply", "changed what is judged by"),
    ("policy-set.create", "created"),
    ("policy-set.delete", "deleted"),
    ("policy-set.update", "changed"),
    ("policy-set-version.create", "announced"),
    ("policy-set-version.upload", "uploaded"),
    ("provider-platform.create", "announced"),
    ("provider-platform.delete", "deleted"),
    ("provider-platform.upload", "uploaded"),
    ("provider-version.create", "announced"),
    ("provider-version.delete", "deleted"),
    ("provider-version.upload", "uploaded checksums of"),
    ("registry-module.create", "created"),
    ("registry-module.delete", "deleted"),
    ("registry-module.update", "changed"),
    ("registry-provider.create", "created"),
    ("registry-provider.delete", "deleted"),
    ("run-task.create", "created"),
    ("run-task.delete", "deleted"),
    ("run-task.update", "changed"),
    ("task.ask", "asked a run task about"),
    ("task-result.answer", "answered for a run task about"),
    ("workspace-run-task.create", "added"),
    ("workspace-run-task.delete", "removed"),
    ("workspace-run-task.update", "changed"),
    ("run-trigger.create", "created"),
    ("run-trigger.delete", "deleted"),
    ("run.cancel", "canceled"),
    ("run.comment", "commented on"),
    ("run.confirm", "approved"),
    ("reserved-tag-key.create", "added"),
    ("reserved-tag-key.delete", "deleted"),
    ("reserved-tag-key.update", "changed"),
    ("retention.delete", "deleted old data of"),
    ("retention.mark", "marked old data as deleted of"),
    ("run.create", "started"),
    ("run.discard", "discarded"),
    ("run.force-cancel", "force-canceled"),
    ("run.force-execute", "moved to the front of the queue"),
    ("run.override-policies", "overrode the policies of"),
    ("run.wait", "noted why it waits:"),
    ("session.close", "logged out"),
    ("session.close-others", "ended their other sessions"),
    ("session.open", "logged in"),
    ("session.use", "used a session"),
    ("site.claimed-author", "noted an author of a local server,"),
    ("site.first-admin", "created the first admin"),
    ("site.first-start", "created the setup link for"),
    ("site.make-key", "created the site's key"),
    ("site.rewrap-key", "re-encrypted the site's key"),
    ("site.rewrap-secrets", "re-encrypted secrets"),
    ("ssh-key.create", "added"),
    ("ssh-key.delete", "deleted"),
    ("ssh-key.update", "renamed"),
    ("state.announce", "started an upload of"),
    ("state.backing-data", "changed the data of"),
    ("state.give-up", "gave up the upload of"),
    ("state.read", "downloaded"),
    ("state.rescue", "kept for later"),
    ("state.restore", "rolled back to"),
    ("state.upload", "uploaded"),
    ("state.upload-json", "uploaded the JSON form of"),
    ("state.write", "wrote"),
    ("tag.add", "added a tag to"),
    ("tag.delete", "deleted a tag of"),
    ("team-project.create", "gave a team access to a project:"),
    ("team-project.delete", "took a team's access to a project away:"),
    ("team-project.update", "changed a team's access to a project:"),
    ("team-workspace.create", "gave a team access to"),
    ("team-workspace.delete", "took away"),
    ("team-workspace.update", "changed a team's access to"),
    ("team.add-members", "added members to"),
    ("team.create", "created"),
    ("team.delete", "deleted"),
    ("team.remove-members", "removed members from"),
    ("team.update", "changed"),
    ("token.create", "created"),
    ("token.revoke", "revoked"),
    ("token.use", "used"),
    ("user.change-password", "changed the password of"),
    ("user.create", "created"),
    ("user.renew-password-link", "created a password link for"),
    ("user.seal-password", "re-encrypted the password of"),
    ("user.set-password", "set the password of"),
    ("user.suspend", "suspended or resumed"),
    ("user.update", "changed"),
    ("user.verify-email", "verified the email of"),
    ("variable-set.apply", "changed where to apply"),
    ("variable-set.create", "created"),
    ("variable-set.delete", "deleted"),
    ("variable-set.update", "changed"),
    ("variable.create", "created"),
    ("variable.delete", "deleted"),
    ("variable.import", "imported variables, among them"),
    ("variable.update", "changed"),
    ("walk.advance", "continued"),
    ("walk.approve", "approved"),
    ("walk.cancel", "canceled"),
    ("walk.create", "started"),
    ("walk.preview", "previewed"),
    ("walk.resume", "resumed"),
    ("workspace.consumers", "changed who may read the state of"),
    ("workspace.create", "created"),
    ("workspace.delete", "deleted"),
    ("workspace.force-unlock", "force-unlocked"),
    ("workspace.give-back-lock", "released the lock of"),
    ("workspace.lock", "locked"),
    ("workspace.retention", "changed the retention policy of"),
    ("workspace.ssh-key", "changed the SSH key of"),
    ("workspace.tag", "changed the tags of"),
    ("workspace.unlock", "unlocked"),
    ("workspace.untag", "removed tags from"),
    ("workspace.update", "changed"),
];

/// What an action is in words; the action itself where it is unknown.
pub(crate) fn deed(action: &str) -> &str {
    DEEDS.iter().find(|(name, _)| *name == action).map_or(action, |(_, words)| words)
}

/// True if the words say all, without the thing that was recorded.
pub(crate) fn says_all(action: &str) -> bool {
    let noun = action.split('.').next().unwrap_or_default();
    matches!(noun, "grant" | "history" | "session") || matches!(action, "site.first-admin" | "site.make-key")
}

/// A kind of record in words.
pub(crate) fn noun(kind: &str) -> String {
    match kind {
        "state-version" => "state version".to_owned(),
        "configuration-version" => "configuration".to_owned(),
        "membership" => "member".to_owned(),
        "organization-entry" => "organization".to_owned(),
        "team-workspace" | "team-project" => "access".to_owned(),
        "consumption" | "workspace-outputs" => "dependencies".to_owned(),
        "walk-node" => "workspace of a walk".to_owned(),
        "ssh-key" => "SSH key".to_owned(),
        "oauth-client" => "OAuth client".to_owned(),
        "oauth-token" => "OAuth token".to_owned(),
        other => other.replace('-', " "),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// Texts in quotes that look like an action with a noun that the log knows.
    fn actions_in(text: &str, nouns: &BTreeSet<&str>) -> BTreeSet<String> {
        let is_action = |quoted: &&str| {
            let is_plain = |text: &str| {
                !text.is_empty() && text.chars().all(|character| character.is_ascii_lowercase() || character == '-')
            };
            quoted.split_once('.').is_some_and(|(noun, verb)| nouns.contains(noun) && is_plain(verb))
        };
        text.lines().flat_map(|line| line.split('"').skip(1).step_by(2)).filter(is_action).map(str::to_owned).collect()
    }

    #[test]
    fn every_action_of_the_control_plane_has_words() {
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane/src"), &mut files);
        let texts: Vec<_> = files.iter().map(|file| fs::read_to_string(file).expect("a source")).collect();
        // A noun that the list lacks is known by the calls that take actions.
        let intents = texts.iter().flat_map(|text| text.lines()).flat_map(|line| {
            [".change(caller, \"", "own_intent(\""]
                .into_iter()
                .filter_map(|call| line.split_once(call)?.1.split_once('.'))
        });
        let nouns = DEEDS.iter().filter_map(|(action, _)| action.split_once('.')).chain(intents);
        let nouns: BTreeSet<_> = nouns.map(|(noun, _)| noun).collect();
        let actions: BTreeSet<_> = texts.iter().flat_map(|text| actions_in(text, &nouns)).collect();
        assert!(actions.len() > 60, "{actions:?}");
        let wordless: Vec<_> = actions.iter().filter(|action| deed(action) == action.as_str()).collect();
        assert!(wordless.is_empty(), "{wordless:?} have no words in the audit log");
    }

    #[test]
    fn kinds_name_known_actions() {
        for (_, name, actions) in ORGANIZATION_KINDS.iter().chain(SITE_KINDS) {
            for action in *actions {
                let is_known = |(known, _): &(&str, &str)| known == action || known.split('.').next() == Some(action);
                assert!(DEEDS.iter().any(is_known), "{name}: {action}");
            }
        }
    }
}
