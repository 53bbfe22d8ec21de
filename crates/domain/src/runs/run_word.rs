//! Words in the records of runs, which are mostly the same few.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The words that taco writes, sorted: names of actions and of the times at which a status began.
const KNOWN: [&str; 46] = [
    "agent_returned",
    "applied",
    "applied-at",
    "apply-queued-at",
    "apply_queued",
    "applying",
    "applying-at",
    "canceled",
    "canceled-at",
    "commented",
    "confirmed",
    "confirmed-at",
    "created",
    "discarded",
    "discarded-at",
    "errored",
    "errored-at",
    "failed-at",
    "force-canceled-at",
    "force_canceled",
    "passed-at",
    "pending-at",
    "plan-queueable-at",
    "plan-queued-at",
    "plan_queued",
    "plan_requeued",
    "planned",
    "planned-and-finished-at",
    "planned-and-saved-at",
    "planned-at",
    "planned_and_finished",
    "planned_and_saved",
    "planning",
    "planning-at",
    "post-plan-completed-at",
    "post-plan-running-at",
    "post_plan_running",
    "pre-apply-completed-at",
    "pre-apply-running-at",
    "pre-plan-completed-at",
    "pre-plan-running-at",
    "pre_apply_running",
    "pre_plan_running",
    "running-at",
    "state_rescued",
    "unreachable-at",
];

/// Action or name of a time in a run's record. One that is known takes no memory of its own: an organization holds a
/// dozen for each of its runs.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunWord(Cow<'static, str>);

impl RunWord {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn known(text: &str) -> Option<&'static str> {
        KNOWN.binary_search(&text).ok().map(|at| KNOWN[at])
    }
}

impl From<&str> for RunWord {
    fn from(text: &str) -> Self {
        Self(Self::known(text).map_or_else(|| Cow::Owned(text.to_owned()), Cow::Borrowed))
    }
}

impl From<String> for RunWord {
    fn from(text: String) -> Self {
        Self(Self::known(&text).map_or(Cow::Owned(text), Cow::Borrowed))
    }
}

impl Deref for RunWord {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for RunWord {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunWord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl fmt::Debug for RunWord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl Serialize for RunWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for RunWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = RunWord;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a word")
            }

            fn visit_str<E>(self, text: &str) -> Result<RunWord, E> {
                Ok(text.into())
            }

            fn visit_string<E>(self, text: String) -> Result<RunWord, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::Author;
    use crate::run::tests::given_run;
    use crate::run_status::RunEvent;

    fn is_known(word: &RunWord) -> bool {
        matches!(word.0, Cow::Borrowed(_))
    }

    #[test]
    fn what_happens_to_a_run_is_told_in_known_words() {
        use RunEvent as E;
        assert!(KNOWN.is_sorted());
        let lives: [&[E]; 4] = [
            &[
                E::ReachedFront,
                E::PlanTaken,
                E::PlanAwaitsDecision,
                E::Confirmed,
                E::ReachedFront,
                E::ApplyTaken,
                E::Applied,
            ],
            &[E::ReachedFront, E::PlanTaken, E::PlanWasAll],
            &[E::ReachedFront, E::PlanTaken, E::Failed],
            &[E::Canceled],
        ];
        for life in lives {
            let mut run = given_run(1).created(Timestamp::UNIX_EPOCH);
            for event in life {
                // A run may be confirmed and queued in one step.
                run = run.after(*event, Timestamp::UNIX_EPOCH, Author::Taco).unwrap_or(run);
            }
            assert!(run.status.is_final(), "{:?}", run.status);
            let actions = run.history.iter().map(|entry| &entry.action);
            let words: Vec<&RunWord> = actions.chain(run.timestamps.iter().map(|(name, _)| name)).collect();
            assert!(words.iter().all(|word| is_known(word)), "{words:?}");
        }
    }

    #[test]
    fn any_word_is_read_and_written_as_it_is() {
        for (text, known) in [("planned-at", true), ("comets", false), ("", false)] {
            let json = serde_json::to_string(text).expect("JSON");
            let word: RunWord = serde_json::from_str(&json).expect("a word");
            assert_eq!((word.as_str(), is_known(&word)), (text, known));
            assert_eq!(serde_json::to_string(&word).expect("JSON"), json);
            assert_eq!(RunWord::from(text.to_owned()), word);
        }
        assert!(serde_json::from_str::<RunWord>("7").is_err());
    }
}
