//! Words for what the audit log tells.

/// Kinds of actions that the log can be limited to: word in addresses, name, and the actions or their nouns.
pub(crate) type Kind = (&'static str, &'static str, &'static [&'static str]);

pub(crate) const ORGANIZATION_KINDS: &[Kind] = &[
    ("runs", "Runs", &["run", "phase", "configuration"]),
    ("states", "States", &["state"]),
    ("secrets", "Reads of states, outputs and plans", &["state.read", "output", "plan"]),
    ("variables", "Variables and variable sets", &["variable", "variable-set"]),
    ("workspaces", "Workspaces", &["workspace", "run-trigger", "tag"]),
    ("projects", "Projects", &["project"]),
    ("access", "Members, teams and their access", &["membership", "team", "team-project", "team-workspace"]),
    ("tokens", "Tokens and SSH keys", &["token", "ssh-key"]),
    ("agents", "Agents and pools", &["agent", "agent-pool"]),
    ("organization", "Organization settings", &["organization"]),
];

pub(crate) const SITE_KINDS: &[Kind] = &[
    ("users", "Users", &["user", "site.first-admin", "site.first-start"]),
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
    ("configuration.announce", "started an upload of"),
    ("configuration.upload", "uploaded"),
    ("configuration.give-up", "gave up the upload of"),
    ("configuration.archive", "archived"),
    ("configuration.backing-data", "changed the data of"),
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
    ("organization.begin", "created"),
    ("organization.create", "created"),
    ("organization.delete", "deleted"),
    ("organization.rename", "renamed"),
    ("organization.update", "changed the settings of"),
    ("output.read", "read sensitive outputs of"),
    ("output.reveal", "revealed a sensitive output of"),
    ("phase.finish", "finished a phase of"),
    ("phase.lose", "lost the agent of"),
    ("phase.return", "queued again"),
    ("phase.take", "handed to an agent"),
    ("plan.read", "downloaded the full plan of"),
    ("project.create", "created"),
    ("project.delete", "deleted"),
    ("project.tag", "changed the tags of"),
    ("project.update", "changed"),
    ("run-trigger.create", "created"),
    ("run-trigger.delete", "deleted"),
    ("run.cancel", "canceled"),
    ("run.comment", "commented on"),
    ("run.confirm", "approved"),
    ("run.create", "started"),
    ("run.discard", "discarded"),
    ("run.force-cancel", "force-canceled"),
    ("run.force-execute", "moved to the front of the queue"),
    ("run.wait", "noted why it waits:"),
    ("session.close", "logged out"),
    ("session.close-others", "ended their other sessions"),
    ("session.open", "logged in"),
    ("session.use", "used a session"),
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
    ("workspace.consumers", "changed who may read the state of"),
    ("workspace.create", "created"),
    ("workspace.delete", "deleted"),
    ("workspace.force-unlock", "force-unlocked"),
    ("workspace.give-back-lock", "released the lock of"),
    ("workspace.lock", "locked"),
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
        "ssh-key" => "SSH key".to_owned(),
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
        let nouns: BTreeSet<_> = DEEDS.iter().filter_map(|(action, _)| Some(action.split_once('.')?.0)).collect();
        let mut files = Vec::new();
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../control-plane/src"), &mut files);
        let texts = files.iter().map(|file| fs::read_to_string(file).expect("a source"));
        let actions: BTreeSet<_> = texts.flat_map(|text| actions_in(&text, &nouns)).collect();
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
