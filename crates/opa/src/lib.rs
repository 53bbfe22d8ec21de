//! Open Policy Agent as servers, agents and command lines use it: what a policy set's files say, how `opa` is asked, and
//! what its answers mean. Nothing here knows who asks.

mod check;
mod evaluation;
mod policy_files;
mod program;

pub use check::{CheckError, Problem, RegoSyntax, check};
pub use evaluation::{Verdict, eval_arguments, verdict, write_input};
pub use policy_files::{
    DEFINITION_FILES, InvalidPolicySet, MAX_POLICIES, MAX_POLICY_BYTES, PolicyDefinition, PolicyFiles, PolicyLevel,
    is_policy_file,
};
pub use program::{DEFAULT_VERSION, MIN_VERSION, REMOVED_BUILTINS, cut_capabilities, find_on_path};

#[cfg(test)]
mod tests;
