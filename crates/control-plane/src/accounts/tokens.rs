//! Tokens: issue, recognise, revoke.

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::agent_pool::AgentPool;
use taco_domain::id::{AgentPoolId, OrganizationId, TeamId, TokenId, UserId};
use taco_domain::permission::{Action, Actor, Credential, Decision, Resource, covers};
use taco_domain::team::Team;
use taco_domain::token::{Token, TokenHolder, TokenKind, TokenText, token_description};
use taco_domain::token_lifetime::token_expiry;
use taco_domain::user::User;
use taco_domain::{OrganizationState, Site};
use taco_ledger::{Ledger, View};
use taco_tables::{Holds, Record as _, Table};

use crate::caller::{Caller, PrefetchedOrganization, RequestInfo, RequestTarget};
use crate::control_plane::{ControlPlane, OrganizationSnapshot};
use crate::error::Error;
use crate::first_start::first_admin;
use crate::page::{Listed, PageRequest};
use crate::teams::{TeamView, token_action};

/// Attributes of a token to create.
#[derive(Clone, Default, Debug)]
pub struct NewToken {
    pub description: Option<String>,
    /// Two years from now where it is missing.
    pub expires_at: Option<Timestamp>,
}

/// A new token, with the text, which is shown only once.
#[derive(Clone, Debug)]
pub struct IssuedToken {
    pub token: Token,
    pub text: TokenText,
}

/// In which order tokens of teams are listed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TeamTokenOrder {
    #[default]
    TeamName,
    Expiry,
    LastUse,
    Creator,
}

/// An organization has one token of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OrganizationTokenKind {
    Organization,
    AuditTrail,
}

impl OrganizationTokenKind {
    fn holder(self) -> TokenHolder {
        match self {
            Self::Organization => TokenHolder::Organization,
            Self::AuditTrail => TokenHolder::AuditTrail,
        }
    }
}

/// One sentence for everything that does not open: it must not tell which part was wrong.
fn not_valid() -> Error {
    Error::Unauthorized("the token is not valid: it was mistyped, revoked, or made elsewhere".to_owned())
}

/// Recognising who asks.
#[boxed]
impl ControlPlane {
    /// Caller who sent this token.
    pub async fn authenticate(&self, text: &str, request: RequestInfo) -> Result<Caller, Error> {
        self.authenticate_for(text, request, None).await
    }

    /// The same for a request about an organization, which is looked at meanwhile: to a far bucket each look is a long
    /// way.
    pub async fn authenticate_for(
        &self,
        text: &str,
        request: RequestInfo,
        about: Option<RequestTarget>,
    ) -> Result<Caller, Error> {
        let token_guesses = &self.shared.token_guesses;
        token_guesses.check(request.address, text)?;
        let (site, prefetched) = tokio::join!(self.read_site(), self.prefetch(about));
        let site = site?;
        let (actor, token) = if self.is_site_token(text) {
            (Actor::User { id: self.trusted_user(), site_admin: true, by: Credential::Token { life: None } }, None)
        } else {
            self.actor_with(&site, text).await.map_err(|error| token_guesses.count(request.address, error))?
        };
        Ok(Caller { actor, token, request, site, prefetched })
    }

    /// Someone without a token: they may look at what is open to everyone, and log in.
    pub async fn anonymous(&self, request: RequestInfo) -> Result<Caller, Error> {
        Ok(Caller {
            actor: Actor::Anonymous,
            token: None,
            request,
            site: self.read_site().await?,
            prefetched: PrefetchedOrganization::default(),
        })
    }

    /// The first admin, or the claimed author, without any token, for a server that runs without login.
    pub async fn without_login(&self, request: RequestInfo) -> Result<Caller, Error> {
        let actor = Actor::User { id: self.trusted_user(), site_admin: true, by: Credential::Session };
        Ok(Caller {
            actor,
            token: None,
            request,
            site: self.read_site().await?,
            prefetched: PrefetchedOrganization::default(),
        })
    }

    /// The user that this server's operator is.
    fn trusted_user(&self) -> UserId {
        self.shared.claimed_author.get().copied().unwrap_or_else(first_admin)
    }

    fn is_site_token(&self, text: &str) -> bool {
        // Both are keyed hashes, so the time of this comparison tells nothing about the text.
        self.shared.site_token.is_some_and(|hash| hash == self.hash_key().hash("site-token", text))
    }

    async fn actor_with(&self, site: &View<Site>, text: &str) -> Result<(Actor, Option<TokenId>), Error> {
        if let Some(attempt) = self.read_phase_token(text) {
            return Ok((self.actor_of_phase(site, attempt?).await?, None));
        }
        if let Some(result) = self.read_task_token(text) {
            return Ok((self.actor_of_task(site, result?).await?, None));
        }
        let text: TokenText = text.parse().map_err(|_| not_valid())?;
        match text.organization {
            None => {
                let token = self.find_valid(&site.tokens, &text)?;
                let TokenHolder::User(id) = token.holder else { return Err(not_valid()) };
                let user = site.users.get(&id).filter(|user| !user.suspended).ok_or_else(not_valid)?;
                self.remember_use(&self.shared.site, token);
                let by = Credential::Token { life: token.life() };
                Ok((Actor::User { id, site_admin: user.site_admin, by }, Some(token.id)))
            }
            Some(id) if site.organizations.contains(&id) => {
                let organization = self.open_organization(site, id).await?;
                let token = self.find_valid(&organization.state.tokens, &text)?;
                let actor = actor_of(id, token).ok_or_else(not_valid)?;
                self.remember_use(&organization.ledger, token);
                Ok((actor, Some(token.id)))
            }
            Some(_) => Err(not_valid()),
        }
    }

    fn find_valid<'a>(&self, tokens: &'a Table<Token>, text: &TokenText) -> Result<&'a Token, Error> {
        let token = tokens.by().hash.first(&text.hash(self.hash_key()));
        let token = token.filter(|token| token.holder.kind() == text.kind).ok_or_else(not_valid)?;
        token.check(self.now()).map_err(|expired| Error::Unauthorized(expired.to_string()))?;
        Ok(token)
    }

    /// Notes that a token was used, once an hour and in the background of the request: a lost note does no harm.
    fn remember_use<S: Holds<Token>>(&self, ledger: &Ledger<S>, token: &Token) {
        let (id, now) = (token.id, self.now());
        if token.use_to_remember(now).is_none() || !self.shared.uses_in_flight.begin(id) {
            return;
        }
        let (control_plane, ledger) = (self.clone(), ledger.clone());
        tokio::spawn(async move {
            let noted = ledger.commit(Self::own_intent("token.use"), move |tx| -> Result<(), Error> {
                let tokens: &Table<Token> = tx.state().table();
                if let Some(used) = tokens.get(&id).and_then(|token| token.use_to_remember(now)) {
                    tx.put(&used);
                }
                Ok(())
            });
            if let Err(error) = noted.await {
                tracing::warn!(
                    event = "token_use_not_recorded", token = %id, %error,
                    "the use of a token could not be noted"
                );
            }
            control_plane.shared.uses_in_flight.end(id);
        });
    }
}

fn actor_of(organization: OrganizationId, token: &Token) -> Option<Actor> {
    match token.holder {
        TokenHolder::User(_) => None,
        TokenHolder::Team(team) => {
            Some(Actor::Team { organization, team, from_organization: token.is_from_organization() })
        }
        TokenHolder::Organization => Some(Actor::Organization(organization)),
        TokenHolder::AuditTrail => Some(Actor::AuditTrail(organization)),
        TokenHolder::AgentPool(pool) => Some(Actor::AgentPool { organization, pool }),
    }
}

/// Users' own tokens.
#[boxed]
impl ControlPlane {
    pub async fn create_user_token(&self, caller: &Caller, user: UserId, new: NewToken) -> Result<IssuedToken, Error> {
        caller.require(Action::UpdateAccount, Resource::Account(user), "user")?;
        let text = TokenText::of_user(self.secret());
        let id = TokenId::from_random(self.random());
        let token = self.token(caller, id, TokenHolder::User(user), new, None, &text)?;
        let stored = token.clone();
        self.commit_site(caller.intent("token.create"), move |tx| {
            if !tx.state().users.contains(&user) {
                return Err(Error::NotFound(User::NOUN));
            }
            tx.put(&stored);
            Ok(())
        })
        .await?;
        Ok(IssuedToken { token, text })
    }

    /// A user's tokens, oldest first.
    pub async fn user_tokens(&self, caller: &Caller, user: UserId) -> Result<Vec<Token>, Error> {
        caller.require(Action::ReadAccount, Resource::Account(user), "user")?;
        let site = &caller.site;
        Ok(tokens_held_by(&site.tokens, TokenHolder::User(user)))
    }

    /// A token of any kind, by its id.
    pub async fn token_with_id(&self, caller: &Caller, id: TokenId) -> Result<Token, Error> {
        let what = Token::NOUN;
        if let Some(token) = caller.site.tokens.get(&id) {
            let TokenHolder::User(user) = token.holder else { return Err(Error::NotFound(what)) };
            caller.require(Action::ReadAccount, Resource::Account(user), what)?;
            return Ok(token.clone());
        }
        let organization = self.authorized_organization(caller, id.organization_prefix(), what).await?;
        let token = organization.state.tokens.get(&id).ok_or(Error::NotFound(what))?;
        require_token(caller, &organization.state, token)?;
        Ok(token.clone())
    }

    /// Ends a token of any kind.
    pub async fn revoke_token(&self, caller: &Caller, id: TokenId) -> Result<(), Error> {
        if caller.site.tokens.contains(&id) {
            let TokenHolder::User(user) = self.token_with_id(caller, id).await?.holder else {
                return Err(Error::NotFound(Token::NOUN));
            };
            caller.require(Action::UpdateAccount, Resource::Account(user), Token::NOUN)?;
            return self
                .commit_site(caller.intent("token.revoke"), move |tx| {
                    tx.delete::<Token>(&id);
                    Ok(())
                })
                .await;
        }
        let mut organization = self.authorized_organization(caller, id.organization_prefix(), Token::NOUN).await?;
        organization
            .change(caller, "token.revoke", self.now(), move |tx| {
                require_token(tx.caller(), tx.state(), &tx.get(&id)?)?;
                tx.delete::<Token>(&id)
            })
            .await
    }

    fn token(
        &self,
        caller: &Caller,
        id: TokenId,
        holder: TokenHolder,
        new: NewToken,
        longest: Option<SignedDuration>,
        text: &TokenText,
    ) -> Result<Token, Error> {
        let now = self.now();
        Ok(Token {
            id,
            hash: text.hash(self.hash_key()),
            holder,
            description: token_description(new.description)?,
            created_at: now,
            created_by: caller.author(),
            expires_at: Some(token_expiry(new.expires_at, longest, now)?),
            last_used_at: None,
            from_organization: caller.actor.is_from_organization(),
        })
    }
}

/// Tokens of organizations, teams and agent pools.
#[boxed]
impl ControlPlane {
    /// Gives an organization a token, in place of the one it had.
    pub async fn create_organization_token(
        &self,
        caller: &Caller,
        organization: &str,
        kind: OrganizationTokenKind,
        new: NewToken,
    ) -> Result<IssuedToken, Error> {
        let mut organization = self.organization_named(caller, organization).await?;
        let issued = self.organization_owned(caller, &organization, kind.holder(), new)?;
        let token = issued.token.clone();
        let change = organization.change_with_secret(caller, "token.create", move |tx| {
            require_token(tx.caller(), tx.state(), &token)?;
            for old in tokens_held_by(&tx.state().tokens, token.holder) {
                tx.delete::<Token>(&old.id)?;
            }
            tx.put(&token);
            Ok(())
        });
        change.await?;
        Ok(issued)
    }

    pub async fn organization_token(
        &self,
        caller: &Caller,
        organization: &str,
        kind: OrganizationTokenKind,
    ) -> Result<Token, Error> {
        let organization = self.organization_named(caller, organization).await?;
        caller.require(Action::ManageOrganizationToken, organization.resource(), Token::NOUN)?;
        only_token(&organization.state, kind.holder())
    }

    pub async fn delete_organization_token(
        &self,
        caller: &Caller,
        organization: &str,
        kind: OrganizationTokenKind,
    ) -> Result<(), Error> {
        let token = self.organization_token(caller, organization, kind).await?;
        self.revoke_token(caller, token.id).await
    }

    /// Gives a team a token. One without a description takes the place of the one it had; with a description, a team
    /// has as many as it likes.
    pub async fn create_team_token(&self, caller: &Caller, team: TeamId, new: NewToken) -> Result<IssuedToken, Error> {
        let mut organization = self.authorized_organization(caller, team.organization_prefix(), Team::NOUN).await?;
        organization.get::<Team>(&team)?;
        let issued = self.organization_owned(caller, &organization, TokenHolder::Team(team), new)?;
        let token = issued.token.clone();
        let change = organization.change_with_secret(caller, "token.create", move |tx| {
            require_token(tx.caller(), tx.state(), &token)?;
            check_covers(tx.caller(), tx.state(), team)?;
            for old in tokens_held_by(&tx.state().tokens, token.holder) {
                match &token.description {
                    None if old.description.is_none() => tx.delete::<Token>(&old.id)?,
                    Some(_) if old.description == token.description => {
                        return Err(Error::name_taken("description"));
                    }
                    _ => {}
                }
            }
            tx.put(&token);
            Ok(())
        });
        change.await?;
        Ok(issued)
    }

    /// The team's token without a description.
    pub async fn team_token(&self, caller: &Caller, team: TeamId) -> Result<Token, Error> {
        let tokens = self.team_tokens(caller, team).await?;
        tokens.into_iter().find(|token| token.description.is_none()).ok_or(Error::NotFound(Token::NOUN))
    }

    /// All tokens of a team, oldest first.
    pub async fn team_tokens(&self, caller: &Caller, team: TeamId) -> Result<Vec<Token>, Error> {
        let organization = self.authorized_organization(caller, team.organization_prefix(), Team::NOUN).await?;
        require_team_tokens(caller, &organization.state, team)?;
        Ok(tokens_held_by(&organization.state.tokens, TokenHolder::Team(team)))
    }

    /// The tokens of an organization's teams, as far as the caller may manage them. `teams` is a part of the teams' names.
    pub async fn team_tokens_of(
        &self,
        caller: &Caller,
        organization: &str,
        teams: Option<&str>,
        order: TeamTokenOrder,
        reversed: bool,
        page: PageRequest,
    ) -> Result<Listed<Token>, Error> {
        let org = self.organization_named(caller, organization).await?;
        caller.require(Action::ManageTeams, org.resource(), "organization")?;
        let state = &org.state;
        let part = teams.unwrap_or_default().to_lowercase();
        let teams = state.teams.by().name.iter().filter(|team| team.name.key().as_str().contains(&part));
        let teams = teams.filter(|team| require_team_tokens(caller, state, team.id).is_ok());
        let mut found: Vec<Token> =
            teams.flat_map(|team| tokens_held_by(&state.tokens, TokenHolder::Team(team.id))).collect();
        match order {
            // They were found so.
            TeamTokenOrder::TeamName => {}
            TeamTokenOrder::Expiry => found.sort_by_key(|token| token.expires_at),
            TeamTokenOrder::LastUse => found.sort_by_key(|token| token.last_used_at),
            TeamTokenOrder::Creator => found.sort_by_key(|token| org.name_of(&token.created_by)),
        }
        if reversed {
            found.reverse();
        }
        Ok(Listed::from_all(found, page))
    }

    /// Gives an agent pool one more token.
    pub async fn create_agent_pool_token(
        &self,
        caller: &Caller,
        pool: AgentPoolId,
        new: NewToken,
    ) -> Result<IssuedToken, Error> {
        let mut organization =
            self.authorized_organization(caller, pool.organization_prefix(), AgentPool::NOUN).await?;
        let issued = self.organization_owned(caller, &organization, TokenHolder::AgentPool(pool), new)?;
        let token = issued.token.clone();
        let change = organization.change_with_secret(caller, "token.create", move |tx| {
            tx.require::<AgentPool>(Action::ManageAgentPools, tx.organization())?;
            tx.get::<AgentPool>(&pool)?;
            tx.put(&token);
            Ok(())
        });
        change.await?;
        Ok(issued)
    }

    /// All tokens of an agent pool, oldest first.
    pub async fn agent_pool_tokens(
        &self,
        caller: &Caller,
        pool: AgentPoolId,
        page: PageRequest,
    ) -> Result<Listed<Token>, Error> {
        let organization = self.authorized_organization(caller, pool.organization_prefix(), AgentPool::NOUN).await?;
        caller.require(Action::ManageAgentPools, organization.resource(), AgentPool::NOUN)?;
        organization.get::<AgentPool>(&pool)?;
        Ok(Listed::from_all(tokens_held_by(&organization.state.tokens, TokenHolder::AgentPool(pool)), page))
    }

    fn organization_owned(
        &self,
        caller: &Caller,
        organization: &OrganizationSnapshot,
        holder: TokenHolder,
        new: NewToken,
    ) -> Result<IssuedToken, Error> {
        let text = TokenText::of_organization(holder.kind(), organization.id(), self.secret());
        let id = TokenId::within(organization.id().organization_prefix(), self.random());
        let settings = organization.state.organization();
        let longest = settings.and_then(|settings| settings.longest_life(holder.kind()));
        let token = self.token(caller, id, holder, new, longest, &text)?;
        Ok(IssuedToken { token, text })
    }
}

fn tokens_held_by(tokens: &Table<Token>, holder: TokenHolder) -> Vec<Token> {
    let mut held: Vec<Token> = tokens.by().holder.get(&holder).cloned().collect();
    held.sort_by_key(|token| (token.created_at, token.id));
    held
}

fn only_token(state: &OrganizationState, holder: TokenHolder) -> Result<Token, Error> {
    tokens_held_by(&state.tokens, holder).pop().ok_or(Error::NotFound(Token::NOUN))
}

/// May the caller make, see and revoke this token of an organization?
fn require_token(caller: &Caller, state: &OrganizationState, token: &Token) -> Result<(), Error> {
    let organization = Resource::Organization(state);
    match token.holder.kind() {
        TokenKind::Organization | TokenKind::AuditTrail => {
            caller.require(Action::ManageOrganizationToken, organization, Token::NOUN)
        }
        TokenKind::AgentPool => caller.require(Action::ManageAgentPools, organization, Token::NOUN),
        TokenKind::Team | TokenKind::User => match token.holder {
            TokenHolder::Team(team) => require_team_tokens(caller, state, team),
            _ => Err(Error::NotFound(Token::NOUN)),
        },
    }
}

/// A token of a team acts in its name, so nobody makes one of a team that may do more than they may.
fn check_covers(caller: &Caller, state: &OrganizationState, id: TeamId) -> Result<(), Error> {
    let team = state.teams.get(&id).ok_or(Error::NotFound(Team::NOUN))?;
    if covers(&caller.actor, state, team) {
        return Ok(());
    }
    Err(Error::Denied(format!(
        "You may not create a token of team {}: the team may do more than you may, and so could whoever has its token. \
         An owner of the organization may",
        team.name
    )))
}

/// Those who manage teams may, and a team's own members where the team allows it.
fn require_team_tokens(caller: &Caller, state: &OrganizationState, id: TeamId) -> Result<(), Error> {
    let team = state.teams.get(&id).ok_or(Error::NotFound(Team::NOUN))?;
    let is_member = match &caller.actor {
        Actor::User { id: user, .. } => state.membership_of(user).is_some_and(|member| member.teams.contains(&id)),
        _ => false,
    };
    if is_member && team.allow_member_token_management {
        return Ok(());
    }
    caller.require(token_action(state, id), Resource::Organization(state), Team::NOUN)
}

impl TeamView {
    /// Decision about creating a token of the team.
    pub fn creation_of_token(&self, caller: &Caller) -> Decision {
        let state = &self.org.state;
        let decision = match require_team_tokens(caller, state, self.team.id) {
            Ok(()) => caller.may(Action::ReadDirectory, self.org.resource()),
            Err(_) => caller.may(token_action(state, self.team.id), self.org.resource()),
        };
        decision.unless(check_covers(caller, state, self.team.id).err().map(|error| error.to_string()))
    }
}
