//! Answers that were made lately. What an answer says follows from the site, the organization, the caller and the
//! address alone; until one of them changes, it need not be made again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use taco_control_plane::Moment;
use taco_domain::id::OrganizationId;
use taco_domain::permission::Actor;

/// So much text is kept; then all is forgotten, and what is asked for comes back.
const MOST: usize = 8 * 1024 * 1024;
/// A page of a hundred workspaces, the largest there is, has room in it.
const LARGEST: usize = 512 * 1024;

/// Everything that an answer follows from.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) organization: OrganizationId,
    pub(crate) moment: Moment,
    pub(crate) actor: Actor,
    /// Path and query, and whatever else of the request shows in the answer.
    pub(crate) address: String,
}

#[derive(Clone, Default, Debug)]
pub(crate) struct KeptAnswers(Arc<Mutex<Kept>>);

#[derive(Default, Debug)]
struct Kept {
    shelves: HashMap<OrganizationId, Shelf>,
    size: usize,
}

/// What was said about an organization as it was at one moment.
#[derive(Default, Debug)]
struct Shelf {
    moment: Moment,
    by_address: HashMap<String, Vec<(Actor, Bytes)>>,
    size: usize,
}

impl KeptAnswers {
    pub(crate) fn get(&self, question: &Question) -> Option<Bytes> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = kept.shelves.get(&question.organization).filter(|shelf| shelf.moment == question.moment)?;
        let answers = shelf.by_address.get(&question.address)?;
        answers.iter().find(|(actor, _)| *actor == question.actor).map(|(_, answer)| answer.clone())
    }

    pub(crate) fn keep(&self, question: Question, answer: &Bytes) {
        let size = answer.len() + question.address.len();
        if size > LARGEST {
            return;
        }
        let kept = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.size + size > MOST {
            *kept = Kept::default();
        }
        let shelf = kept.shelves.entry(question.organization).or_default();
        if shelf.moment != question.moment {
            // What an older state said will not be asked for again.
            kept.size -= shelf.size;
            *shelf = Shelf { moment: question.moment, ..Shelf::default() };
        }
        shelf.by_address.entry(question.address).or_default().push((question.actor, answer.clone()));
        shelf.size += size;
        kept.size += size;
    }

    /// The answer to a question, made only if it must be.
    pub(crate) fn or_make<E>(&self, question: Question, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        if let Some(kept) = self.get(&question) {
            return Ok(kept);
        }
        let answer = make()?;
        self.keep(question, &answer);
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(organization: u64, actor: Actor, address: &str) -> Question {
        Question {
            organization: OrganizationId::from_random([1; 16]),
            moment: Moment { site: 1, organization },
            actor,
            address: address.to_owned(),
        }
    }

    #[test]
    fn an_answer_is_kept_until_anything_changes_that_it_follows_from() {
        let answers = KeptAnswers::default();
        let asked = question(1, Actor::Anonymous, "/a");
        answers.keep(asked.clone(), &Bytes::from_static(b"answer"));
        let made = answers.or_make(asked.clone(), || Err("it is there already"));
        assert_eq!(made, Ok(Bytes::from_static(b"answer")));
        let other_actor = Actor::Organization(asked.organization);
        let later = Question { moment: Moment { site: 2, organization: 1 }, ..asked.clone() };
        for other in [
            question(2, Actor::Anonymous, "/a"),
            question(1, other_actor, "/a"),
            question(1, Actor::Anonymous, "/b"),
            later,
        ] {
            assert_eq!(answers.get(&other), None, "{other:?}");
        }
        answers.keep(question(2, Actor::Anonymous, "/b"), &Bytes::from_static(b"answer"));
        assert_eq!(answers.get(&asked), None, "it is out of date");
    }

    #[test]
    fn no_more_is_kept_than_fits_and_none_that_is_large() {
        let answers = KeptAnswers::default();
        let numbered = |number: usize| question(1, Actor::Anonymous, &format!("/{number}"));
        answers.keep(numbered(0), &vec![0; LARGEST + 1].into());
        assert!(answers.get(&numbered(0)).is_none());
        let answer = Bytes::from(vec![0; LARGEST / 2]);
        for number in 0..100 {
            answers.keep(numbered(number), &answer);
            assert!(answers.get(&numbered(number)).is_some());
            assert!(answers.0.lock().expect("nobody panicked").size <= MOST);
        }
        assert!(answers.get(&numbered(0)).is_none());
    }

    #[test]
    fn what_a_newer_state_replaced_counts_no_more() {
        let answers = KeptAnswers::default();
        for moment in 0..10 {
            answers.keep(question(moment, Actor::Anonymous, "/a"), &Bytes::from_static(b"answer"));
        }
        assert_eq!(answers.0.lock().expect("nobody panicked").size, "answer/a".len());
    }
}
