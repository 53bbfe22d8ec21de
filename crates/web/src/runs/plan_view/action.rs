//! Planned action on a resource, with a sign and a word: meaning never depends on colour alone.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Create,
    Update,
    Delete,
    Replace {
        create_first: bool,
    },
    Read,
    /// It is no longer managed, and stays where it is.
    Forget,
    Import,
    Move,
}

impl Action {
    /// `None` where nothing happens.
    pub(crate) fn of(actions: &[String]) -> Option<Self> {
        let words: Vec<&str> = actions.iter().map(String::as_str).collect();
        match words[..] {
            ["create"] => Some(Self::Create),
            ["update"] => Some(Self::Update),
            ["delete"] => Some(Self::Delete),
            ["delete", "create"] => Some(Self::Replace { create_first: false }),
            ["create", "delete"] => Some(Self::Replace { create_first: true }),
            ["read"] => Some(Self::Read),
            ["forget"] => Some(Self::Forget),
            ["create", "forget"] | ["forget", "create"] => Some(Self::Create),
            _ => None,
        }
    }

    pub(crate) fn sign(self) -> &'static str {
        match self {
            Self::Create => "+",
            Self::Update => "~",
            Self::Delete => "−",
            Self::Replace { create_first: false } => "−/+",
            Self::Replace { create_first: true } => "+/−",
            Self::Read => "←",
            Self::Forget => "×",
            Self::Import => "↓",
            Self::Move => "→",
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "change",
            Self::Delete => "destroy",
            Self::Replace { .. } => "replace",
            Self::Read => "read",
            Self::Forget => "forget",
            Self::Import => "import",
            Self::Move => "move",
        }
    }

    /// A class of the style sheet.
    pub(crate) fn tone(self) -> &'static str {
        match self {
            Self::Create | Self::Import => "adds",
            Self::Update | Self::Read | Self::Move => "changes",
            Self::Delete | Self::Forget => "removes",
            Self::Replace { .. } => "replaces",
        }
    }
}

/// The engines' reasons, for people.
pub(crate) fn reason(word: &str) -> Option<&'static str> {
    Some(match word {
        "replace_because_tainted" => "it is tainted, so it is replaced",
        "replace_because_cannot_update" => "it cannot be changed in place",
        "replace_by_request" => "someone asked for its replacement",
        "replace_by_triggers" => "what triggers its replacement changed",
        "delete_because_no_resource_config" => "it is no longer in the configuration",
        "delete_because_no_module" => "its module is no longer in the configuration",
        "delete_because_wrong_repetition" => "count or for_each came or went",
        "delete_because_count_index" => "its index is beyond count",
        "delete_because_each_key" => "its key is no longer in for_each",
        "delete_because_no_move_target" => "what it was moved to is not in the configuration",
        "read_because_config_unknown" => "read during the apply: its configuration is not known before",
        "read_because_dependency_pending" => "read during the apply: what it depends on changes first",
        "read_because_check_nested" => "read for a check",
        _ => return None,
    })
}
