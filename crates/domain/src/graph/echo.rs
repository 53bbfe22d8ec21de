//! Echoes: a consumer's resources still hold the values that they were given, also where no data block tells of it. That
//! is no proof. It proposes edges, and tells which outputs of a known one are used.
//!
//! Values that many states hold say nothing. A value belongs to the unit whose resource made it, not to those that pass it
//! on; what several pass on and nobody made, all may have from elsewhere. Only tokens that are some state's output are ever gathered: for all states together that is a number for each
//! output and its holders, whatever the size of the states, and one look-up for each token that a state holds.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::graph::state_evidence::{EchoTokens, StateEvidence};
use crate::graph::token::{Token, TokenKey};

/// Values that more than this share of all states hold do not count, nor those that more than so many offer: 1 in 5.
const AMBIENT_SHARE: usize = 5;
/// Values that at most so many states hold count always.
const ALWAYS_COUNTED: usize = 5;

/// One unit's newest state.
#[derive(Clone, Copy, Debug)]
pub struct EchoState<'a, U> {
    pub unit: U,
    pub tokens: &'a EchoTokens,
}

/// Probable use of one unit's outputs by another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EchoEdge<U> {
    pub consumer: U,
    pub producer: U,
    pub outputs: BTreeSet<String>,
}

/// Outputs that units offer, and who holds them.
struct Echoes<'a> {
    /// By token, states that offer it with the names of their outputs.
    offers: HashMap<Token, Vec<(usize, &'a str)>>,
    /// By token, states that hold it.
    holders: HashMap<Token, Vec<usize>>,
    limit: usize,
}

impl<'a> Echoes<'a> {
    fn of<U>(states: &[EchoState<'a, U>]) -> Self {
        let limit = ALWAYS_COUNTED.max(states.len() / AMBIENT_SHARE);
        let mut offers: HashMap<Token, Vec<(usize, &str)>> = HashMap::new();
        for (index, state) in states.iter().enumerate() {
            for (name, value) in &state.tokens.outputs {
                for token in &value.distinctive {
                    let offered = offers.entry(*token).or_default();
                    if offered.last() != Some(&(index, name)) {
                        offered.push((index, name));
                    }
                }
            }
        }
        let mut holders: HashMap<Token, Vec<usize>> = HashMap::new();
        for (index, state) in states.iter().enumerate() {
            for token in state.tokens.held.iter().filter(|token| offers.contains_key(token)) {
                let holding = holders.entry(*token).or_default();
                // One too many is enough to know that it does not count.
                if holding.len() <= limit {
                    holding.push(index);
                }
            }
        }
        Self { offers, holders, limit }
    }

    fn is_ambient(&self, token: &Token) -> bool {
        let offering = self
            .offers
            .get(token)
            .map_or(0, |offered| offered.iter().map(|(state, _)| state).collect::<BTreeSet<_>>().len());
        offering > self.limit || self.holders.get(token).is_some_and(|holding| holding.len() > self.limit)
    }
}

/// Values that are so common that they say nothing, among outputs of these states.
pub fn ambient_tokens<U>(states: &[EchoState<'_, U>]) -> HashSet<Token> {
    let echoes = Echoes::of(states);
    echoes.offers.keys().filter(|token| echoes.is_ambient(token)).copied().collect()
}

/// Edges that the values in these states propose.
pub fn echo_edges<U: Copy + Ord>(states: &[EchoState<'_, U>]) -> Vec<EchoEdge<U>> {
    let echoes = Echoes::of(states);
    let mut edges: BTreeMap<(U, U), BTreeSet<String>> = BTreeMap::new();
    for (token, holding) in &echoes.holders {
        if echoes.is_ambient(token) {
            continue;
        }
        let offered = &echoes.offers[token];
        let origins: Vec<_> = offered.iter().filter(|(state, _)| is_origin(states[*state].tokens, *token)).collect();
        for consumer in holding.iter().copied().filter(|holder| !states[*holder].tokens.has_made(*token)) {
            let known: Vec<_> = origins.iter().filter(|(state, _)| *state != consumer).collect();
            let passed_on = || offered.iter().filter(|(state, _)| *state != consumer);
            let mut add = |state: usize, name: &str| {
                let edge = edges.entry((states[consumer].unit, states[state].unit)).or_default();
                edge.insert(name.to_owned());
            };
            if !known.is_empty() {
                known.into_iter().for_each(|(state, name)| add(*state, name));
            } else if has_one_offering(offered) && !echoes.has_parts_of_others(states, consumer, *token) {
                passed_on().for_each(|(state, name)| add(*state, name));
            }
        }
    }
    let edges = edges.into_iter();
    edges.map(|((consumer, producer), outputs)| EchoEdge { consumer, producer, outputs }).collect()
}

/// True for the unit that made a value, and for one that computed it: who passes a value on holds it in a resource.
fn is_origin(tokens: &EchoTokens, token: Token) -> bool {
    tokens.has_made(token) || !tokens.holds(token)
}

/// True if all outputs with a value are of one unit.
fn has_one_offering(offered: &[(usize, &str)]) -> bool {
    offered.iter().all(|(state, _)| *state == offered[0].0)
}

impl Echoes<'_> {
    /// True for a text around a value that the consumer has from elsewhere: two that dress the same value alike do not
    /// have it from each other.
    fn has_parts_of_others<U>(&self, states: &[EchoState<'_, U>], consumer: usize, whole: Token) -> bool {
        let consumer = states[consumer].tokens;
        let offering = self.offers[&whole].iter();
        let mut parts = offering.flat_map(|(state, _)| states[*state].tokens.parts_of(whole));
        parts.any(|part| {
            let offered = self.offers.get(&part).filter(|_| !self.is_ambient(&part) && consumer.holds(part));
            offered.is_some_and(|offered| offered.iter().any(|(state, _)| is_origin(states[*state].tokens, part)))
        })
    }
}

/// Outputs that a state read, by whether its resources show that they are used.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct UsedByEcho {
    /// A resource that depends on what was read holds the value.
    pub sure: BTreeSet<String>,
    /// No resource that depends on what was read holds it as it is.
    pub not_found: BTreeSet<String>,
    /// The value is too plain, or so common that finding it says nothing.
    pub cannot_tell: BTreeSet<String>,
}

/// Which outputs are used of what these data blocks read. `is_ambient` knows values that are common among all states;
/// what two producers both say is common, too.
pub fn used_by_echo(
    evidence: &StateEvidence,
    reads: &[usize],
    key: &TokenKey,
    is_ambient: impl Fn(Token) -> bool,
) -> UsedByEcho {
    let users: Vec<_> =
        evidence.users.iter().filter(|user| user.reads.iter().any(|read| reads.contains(read))).collect();
    let mut elsewhere = HashSet::new();
    let others = evidence.reads.iter().enumerate().filter(|(index, _)| !reads.contains(index));
    for value in others.flat_map(|(_, read)| read.values.values()) {
        elsewhere.extend(key.of_value(&value.value).all());
    }
    let mut used = UsedByEcho::default();
    for (name, value) in reads.iter().filter_map(|index| evidence.reads.get(*index)).flat_map(|read| &read.values) {
        let tokens = key.of_value(&value.value);
        let telling: Vec<Token> =
            tokens.all().filter(|token| !elsewhere.contains(token) && !is_ambient(*token)).collect();
        if telling.is_empty() {
            used.cannot_tell.insert(name.clone());
        } else if telling.iter().any(|token| users.iter().any(|user| user.held.holds(*token))) {
            used.sure.insert(name.clone());
        } else if evidence.complete {
            used.not_found.insert(name.clone());
        } else {
            used.cannot_tell.insert(name.clone());
        }
    }
    // Two blocks may have read different values of the same output.
    used.not_found.retain(|name| !used.sure.contains(name));
    used.cannot_tell.retain(|name| !used.sure.contains(name) && !used.not_found.contains(name));
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; 32] = [7; 32];

    fn evidence(state: &str) -> StateEvidence {
        StateEvidence::read(state.as_bytes(), &TokenKey::of(&KEY)).expect("a state")
    }

    fn state(outputs: &str, attributes: &str) -> StateEvidence {
        evidence(&format!(
            r#"{{"version":4,"outputs":{outputs},"resources":[{{"mode":"managed","type":"t","name":"n","instances":[{{"attributes":{attributes}}}]}}]}}"#
        ))
    }

    /// Edges between units that are named by letters, as `consumer>producer: outputs`.
    fn edges(states: &[StateEvidence]) -> Vec<String> {
        let named: Vec<_> =
            states.iter().zip('a'..).map(|(state, unit)| EchoState { unit, tokens: &state.tokens }).collect();
        let text = |edge: EchoEdge<char>| {
            let outputs: Vec<_> = edge.outputs.into_iter().collect();
            format!("{}>{}: {}", edge.consumer, edge.producer, outputs.join(" "))
        };
        echo_edges(&named).into_iter().map(text).collect()
    }

    const VPC: &str =
        r#"{"vpc_id": {"value": "vpc-0123456789", "type": "string"}, "port": {"value": 8443, "type": "number"}}"#;

    #[test]
    fn a_value_belongs_to_who_made_it() {
        let maker = state(VPC, r#"{"id": "vpc-0123456789"}"#);
        let relay = state(r#"{"vpc": {"value": "vpc-0123456789", "type": "string"}}"#, r#"{"vpc": "vpc-0123456789"}"#);
        let user = state("{}", r#"{"policy": "{\"Resource\": \"arn:vpc/vpc-0123456789\"}", "port": 8443}"#);
        assert_eq!(edges(&[maker, relay, user.clone()]), ["b>a: vpc_id", "c>a: vpc_id"]);
        // Without its maker, who passes it on is all that is known.
        let relay = state(r#"{"vpc": {"value": "vpc-0123456789", "type": "string"}}"#, r#"{"vpc": "vpc-0123456789"}"#);
        assert_eq!(edges(&[relay, user]), ["b>a: vpc"]);
    }

    #[test]
    fn who_dresses_the_same_value_alike_does_not_have_it_from_another() {
        let maker = state(VPC, r#"{"id": "vpc-0123456789"}"#);
        let dressed = r#"{"input": "arn:aws:ec2:eu-central-1:vpc/vpc-0123456789"}"#;
        let relay = r#"{"relay": {"value": "arn:aws:ec2:eu-central-1:vpc/vpc-0123456789", "type": "string"}}"#;
        assert_eq!(edges(&[maker, state(relay, dressed), state("{}", dressed)]), ["b>a: vpc_id", "c>a: vpc_id"]);
    }

    #[test]
    fn what_everybody_holds_does_not_count() {
        let region = r#"{"region": {"value": "eu-central-1", "type": "string"}}"#;
        let many: Vec<_> = (0..12).map(|_| state(region, r#"{"region": "eu-central-1"}"#)).collect();
        assert_eq!(edges(&many), Vec::<String>::new());
        let named: Vec<_> = many.iter().map(|state| EchoState { unit: 0, tokens: &state.tokens }).collect();
        assert_eq!(ambient_tokens(&named).len(), 1);
    }

    #[test]
    fn what_several_pass_on_and_nobody_made_says_nothing() {
        let region =
            || state(r#"{"region": {"value": "eu-central-1", "type": "string"}}"#, r#"{"region": "eu-central-1"}"#);
        let user = state("{}", r#"{"region": "eu-central-1"}"#);
        assert_eq!(edges(&[region(), region()]), Vec::<String>::new(), "neither has it from the other");
        assert_eq!(edges(&[region(), region(), user]), Vec::<String>::new());
    }

    #[test]
    fn resources_tell_which_outputs_they_use() {
        let evidence = evidence(
            r#"{"version":4,"resources":[
            {"mode":"data","type":"terraform_remote_state","name":"a","instances":[{"attributes":{"outputs":{"value":{
                "vpc_id":"vpc-0123456789","other":"vpc-9876543210","port":8443,"flag":true,"region":"eu-central-1","zone":"zone-of-two"},"type":["object",{}]}}}]},
            {"mode":"data","type":"terraform_remote_state","name":"b","instances":[{"attributes":{"outputs":{"value":{"zone":"zone-of-two"},"type":["object",{}]}}}]},
            {"mode":"managed","type":"t","name":"n","instances":[
                {"attributes":{"input":["vpc-0123456789","8443",true,"eu-central-1","zone-of-two"]},"dependencies":["data.terraform_remote_state.a"]},
                {"index_key":1,"attributes":{"input":"vpc-9876543210"}}]}]}"#,
        );
        let key = TokenKey::of(&KEY);
        let region = key.of_value(&serde_json::value::to_raw_value("eu-central-1").expect("JSON")).distinctive[0];
        let used = used_by_echo(&evidence, &[0], &key, |token| token == region);
        let listed = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        assert_eq!(listed(&used.sure), "port vpc_id");
        assert_eq!(listed(&used.not_found), "other");
        assert_eq!(listed(&used.cannot_tell), "flag region zone");
        assert_eq!(used_by_echo(&evidence, &[7], &key, |_| false), UsedByEcho::default());
    }
}
