//! Access that a route asks of its caller, as data: the API and the pages declare it in their tables of routes, and
//! tests compare what they do with what [`allow`](super::allow) decides.

use super::Action;

/// Access that a route asks of its caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Nothing: everyone may know the answer.
    Public,
    /// Nothing besides the URL, which is itself the credential.
    SignedAddress,
    /// A valid token. The answer holds what its caller may see, and nothing else.
    Token,
    /// A token of a user, or their session.
    User,
    /// A token of an organization or of its audit trail: it says which organization is meant.
    OrganizationToken,
    /// The token with which a run task is asked, and nothing else.
    TaskToken,
    /// The right to do this there.
    Right(Action, Place),
    /// All of these rights.
    All(&'static [(Action, Place)]),
    /// Other rights for other things that the last placeholder of the path can name.
    Depends(&'static [Case]),
}

/// The thing on which a right is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Site,
    /// The account that the path names.
    Account,
    Organization,
    Project,
    Workspace,
    /// The workspace whose applies pull a run trigger.
    Source,
}

/// The rights that a route takes when its path names such a thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    pub named: &'static str,
    pub rights: &'static [(Action, Place)],
}
