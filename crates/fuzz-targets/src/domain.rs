//! States, JSON, variables, addresses, ids and tokens.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::Value;
use taco_domain::graph::dependency::MAX_ADDRESS_BYTES;
use taco_domain::graph::echo::{EchoState, echo_edges, used_by_echo};
use taco_domain::graph::local_references::LocalReferences;
use taco_domain::graph::plan_evidence::PlanEvidence;
use taco_domain::graph::producer_address::ProducerAddress;
use taco_domain::graph::state_evidence::{EchoTokens, StateEvidence};
use taco_domain::graph::token::TokenKey;
use taco_domain::id::{OrganizationId, RunId, WorkspaceId};
use taco_domain::invitation::InvitationText;
use taco_domain::json_cut::{JsonCut, Piece};
use taco_domain::json_tree::JsonTree;
use taco_domain::name::{OrganizationName, WorkspaceName};
use taco_domain::resource_address::{Addressed, check_address};
use taco_domain::state_file::{Contents, StateFile};
use taco_domain::state_mask::mask;
use taco_domain::token::TokenText;
use taco_domain::variable_file::VariableFormat;

use crate::in_pieces;

const PLACES: &[&[&str]] = &[&["data", "attributes", "state"], &["serial"]];

/// Nothing is lost, wherever pieces end, and what is cut out is what another parser finds at that place.
pub fn json_cuts(data: &[u8]) {
    let (pieces, document) = in_pieces(data);
    let (kept, taken) = cut(&pieces);
    assert_eq!((kept.clone(), taken.clone()), cut(&[document]), "pieces make no difference");
    assert_eq!(kept.len() + taken.iter().map(Vec::len).sum::<usize>(), document.len(), "nothing is lost");

    let Ok(value) = serde_json::from_slice::<Value>(document) else { return };
    // Of a key that is there twice, one parser sees the last and the other both. A body with such a key is refused.
    if taco_tfc_api::fuzzing::body(document).is_err() {
        return;
    }
    for (place, taken) in PLACES.iter().zip(&taken) {
        let found = place.iter().try_fold(&value, |value, key| value.as_object()?.get(*key));
        assert_eq!(found.cloned(), serde_json::from_slice(taken).ok(), "at {place:?}");
    }
}

fn cut(pieces: &[&[u8]]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut json = JsonCut::new(PLACES);
    let (mut kept, mut taken) = (Vec::new(), vec![Vec::new(); PLACES.len()]);
    for piece in pieces {
        json.push(piece, |piece| match piece {
            Piece::Kept(bytes) => kept.extend_from_slice(bytes),
            Piece::Cut { place, bytes, .. } => taken[place].extend_from_slice(bytes),
        });
    }
    (kept, taken)
}

/// A tree means what another parser says, and is written so that it is read as the same tree.
pub fn json_trees(data: &[u8]) {
    let (tree, value) = (JsonTree::parse(data), serde_json::from_slice::<Value>(data));
    if let Ok(value) = &value {
        let tree = tree.as_ref().expect("what is JSON for one is JSON for the other");
        assert_eq!(&serde_json::from_str::<Value>(&tree.compact()).expect("JSON"), value);
    }
    let Ok(tree) = tree else { return };
    assert_eq!(JsonTree::parse(tree.compact().as_bytes()).as_ref(), Ok(&tree));
    assert_eq!(JsonTree::parse(tree.pretty().as_bytes()).as_ref(), Ok(&tree));
    mask(tree).compact();
}

/// A state that flows past is the same state.
pub fn state_files(data: &[u8]) {
    let whole: Result<StateFile, _> = StateFile::parse(data);
    let flowing: Result<StateFile, _> = StateFile::read(Slowly(data));
    match (whole, flowing) {
        (Ok(whole), Ok(flowing)) => {
            assert_eq!((whole.serial, &whole.lineage), (flowing.serial, &flowing.lineage));
            let (Contents::Plain(whole), Contents::Plain(flowing)) = (whole.contents, flowing.contents) else { return };
            let addresses = |resources: &[taco_domain::state_file::Resource]| {
                resources.iter().map(|resource| resource.address(None)).collect::<Vec<_>>()
            };
            assert_eq!(addresses(&whole.resources), addresses(&flowing.resources));
            assert!(whole.outputs.keys().eq(flowing.outputs.keys()));
        }
        (Err(_), Err(_)) => {}
        (whole, flowing) => panic!("{:?} and {:?}", whole.is_ok(), flowing.map(|state| state.serial)),
    }
}

/// What evidence takes for a state, anything else takes for one, too; and evidence is the same however it flows past.
pub fn state_evidence(data: &[u8]) {
    let key = TokenKey::of(&[7; 32]);
    let (whole, flowing) = (StateEvidence::read(data, &key), StateEvidence::read(Slowly(data), &key));
    let (Ok(whole), Ok(flowing)) = (&whole, &flowing) else {
        assert_eq!(whole.is_ok(), flowing.is_ok());
        return;
    };
    assert_eq!(whole.tokens, flowing.tokens);
    let listed = |evidence: &StateEvidence| {
        let reads = evidence.reads.iter().map(|read| (read.data.clone(), read.producer.clone(), read.users.clone()));
        reads.collect::<Vec<_>>()
    };
    assert_eq!(listed(whole), listed(flowing));
    for (index, read) in whole.reads.iter().enumerate() {
        let used = used_by_echo(whole, &[index], &key, |_| false);
        assert_eq!(used.sure.len() + used.not_found.len() + used.cannot_tell.len(), read.values.len());
        if let Some(producer) = &read.producer {
            stays_an_address(&producer.to_string());
        }
    }
    let stored = serde_json::to_string(&whole.tokens).expect("JSON");
    assert_eq!(serde_json::from_str::<EchoTokens>(&stored).expect("tokens"), whole.tokens);
    let twice = [1, 2].map(|unit| EchoState { unit, tokens: &whole.tokens });
    assert!(echo_edges(&twice).iter().all(|edge| edge.consumer != edge.producer));
}

/// A plan that flows past is the same plan, with whatever files there are.
pub fn plan_evidence(data: &[u8]) {
    let mut locals = LocalReferences::default();
    let (plan, files) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    for (file, name) in files.split(|byte| *byte == 0).zip(["main.tf", "../x/y.tf", "m/a.tf.json"]) {
        locals.add_file(name, file);
    }
    let (whole, flowing) = (PlanEvidence::read(plan, &locals), PlanEvidence::read(Slowly(plan), &locals));
    let (Ok(whole), Ok(flowing)) = (&whole, &flowing) else {
        assert_eq!(whole.is_ok(), flowing.is_ok());
        return;
    };
    assert_eq!(format!("{whole:?}"), format!("{flowing:?}"));
    for producer in whole.reads.iter().filter_map(|read| read.producer.as_ref()) {
        stays_an_address(&producer.to_string());
    }
}

/// An address is written as a text of bounded length, which is read as the same address.
pub fn producer_addresses(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    stays_an_address(text);
    let config: Value = serde_json::from_str(text).unwrap_or_else(|_| {
        serde_json::json!({"address": text, "bucket": text, "key": text, "path": text, "organization": text,
            "workspaces": {"name": text}, "storage_account_name": text, "container_name": text})
    });
    for backend in ["remote", "cloud", "http", "s3", "gcs", "azurerm", "local", text] {
        for workspace in [None, Some(text)] {
            let address = ProducerAddress::of_remote_state(backend, &config, workspace).to_string();
            assert!(address.parse::<ProducerAddress>().is_ok(), "{address:?}");
            stays_an_address(&address);
        }
    }
}

fn stays_an_address(text: &str) {
    let Ok(address) = text.parse::<ProducerAddress>() else { return };
    let written = address.to_string();
    assert!(written.len() <= MAX_ADDRESS_BYTES && !written.contains(['\n', '\r', '\0', ' ']), "{written:?}");
    let again: ProducerAddress = written.parse().expect("what is written is read");
    assert_eq!(again.to_string(), written);
    address.workspace_name(&["localhost:8080".to_owned()], "acme");
}

/// Hands out three bytes at a time.
struct Slowly<'a>(&'a [u8]);

impl std::io::Read for Slowly<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (now, later) = self.0.split_at(self.0.len().min(buffer.len()).min(3));
        buffer[..now.len()].copy_from_slice(now);
        self.0 = later;
        Ok(now.len())
    }
}

/// Variables can be written down again, and what is wrong never quotes what might be secret.
pub fn variable_files(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for format in VariableFormat::ALL {
        match format.parse(text) {
            Ok(variables) => {
                let read: usize = variables.iter().map(|variable| variable.value.len()).sum();
                // Escapes such as $${ make an expression longer.
                assert!(read <= 8 * text.len() + 64, "values come from the text");
            }
            Err(why) => assert!(why.to_string().len() <= text.len() + 200, "{why}"),
        }
    }
}

/// An address has nothing in it that a command line or a log would trip over.
pub fn resource_addresses(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let [target, replace] =
        [Addressed::Target, Addressed::Replace].map(|what| check_address("target-addrs", text, what).is_ok());
    assert!(target || !replace, "what can be replaced can be a target");
    if target {
        assert!(text.len() <= 1000 && !text.starts_with('-') && !text.chars().any(char::is_control), "{text:?}");
    }
}

/// An id that is read is written as the same text.
pub fn identifiers(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    stays::<RunId>(text);
    stays::<WorkspaceId>(text);
    stays::<OrganizationId>(text);
    stays::<OrganizationName>(text);
    stays::<WorkspaceName>(text);
    if let Ok(token) = text.parse::<TokenText>() {
        assert_eq!(token.reveal(), text);
    }
    // It may come as the end of a link.
    if let Ok(invitation) = text.parse::<InvitationText>() {
        assert!(text.trim().ends_with(&invitation.reveal()));
    }
}

fn stays<T: FromStr + Display>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string(), text);
    }
}
