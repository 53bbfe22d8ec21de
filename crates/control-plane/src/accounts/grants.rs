//! `terraform login`: consent gives a code, the code gives a token, once.

use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::Author;
use taco_domain::grant::{Grant, GrantRefusal, LIFETIME, check_authorization};
use taco_domain::id::{GrantId, TokenId};
use taco_domain::permission::{Action, Actor, Resource};
use taco_domain::secret::Secret;
use taco_domain::token::{Token, TokenHolder, TokenText};
use taco_domain::token_lifetime::token_expiry;

use crate::caller::Caller;
use crate::control_plane::ControlPlane;
use crate::error::Error;
use crate::tokens::IssuedToken;

/// A used code is kept this long, to notice that someone tries it again.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// A client's request for the user's consent.
#[derive(Clone, Debug)]
pub struct AuthorizationRequest {
    pub client: String,
    pub redirect_uri: String,
    /// PKCE with S256; nothing else is taken.
    pub code_challenge: String,
    /// Requested expiry of the token, if not the default.
    pub token_expires_at: Option<Timestamp>,
}

/// A client's request to exchange its code for a token.
#[derive(Clone, Debug)]
pub struct CodeExchange {
    pub client: String,
    pub redirect_uri: String,
    pub code: String,
    pub code_verifier: String,
}

#[boxed]
impl ControlPlane {
    /// Gives a client a code in the caller's name: they have clicked on a page that named the client.
    pub async fn grant(&self, caller: &Caller, request: AuthorizationRequest) -> Result<Secret, Error> {
        let Actor::User { id: user, .. } = caller.actor else {
            return Err(Error::Unauthorized("log in as a user first".to_owned()));
        };
        caller.require(Action::UpdateAccount, Resource::Account(user), "user")?;
        check_authorization(&request.redirect_uri, &request.code_challenge)
            .map_err(|refusal| Error::invalid("redirect_uri", refusal.to_string()))?;
        let (secret, now) = (self.secret(), self.now());
        let grant = Grant {
            id: GrantId::from_random(self.random()),
            hash: self.hash_key().hash("code", secret.reveal()),
            user,
            client: request.client,
            redirect_uri: request.redirect_uri,
            code_challenge: request.code_challenge,
            created_at: now,
            expires_at: now.checked_add(LIFETIME).unwrap_or(Timestamp::MAX),
            token_expires_at: request.token_expires_at,
            token: None,
        };
        let before = now.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
        self.commit_site(caller.intent("grant.create"), move |tx| {
            let old = tx.state().grants.by().expires_at.iter().take_while(|grant| grant.expires_at < before);
            let old: Vec<GrantId> = old.map(|grant| grant.id).collect();
            for id in old {
                tx.delete::<Grant>(&id);
            }
            tx.put(&grant);
            Ok(())
        })
        .await?;
        Ok(secret)
    }

    /// Exchanges a code for a token. Of two attempts at once, on any servers, one gets it, and the other's attempt
    /// revokes it, for then one of them has stolen the code.
    pub async fn exchange_code(&self, exchange: CodeExchange) -> Result<IssuedToken, Error> {
        let refused = |why: &str| Error::invalid("code", format!("the code is not valid: {why}"));
        let hash = self.hash_key().hash("code", &exchange.code);
        let site = self.read_site().await?;
        let user = site.grants.by().hash.first(&hash).map(|grant| grant.user);
        let user = user.ok_or_else(|| refused("nobody was given it"))?;

        let text = TokenText::of_user(self.secret());
        let now = self.now();
        let stored = Token {
            id: TokenId::from_random(self.random()),
            hash: text.hash(self.hash_key()),
            holder: TokenHolder::User(user),
            description: Some(format!("{} login", exchange.client)),
            created_at: now,
            created_by: Author::User(user),
            expires_at: Some(token_expiry(None, None, now)?),
            last_used_at: None,
            from_organization: false,
        };
        let intent = taco_ledger::Intent { actor: user.to_string(), action: "grant.exchange", request: None };
        let outcome = self.commit_site(intent, move |tx| {
            let id = tx.state().grants.by().hash.first(&hash).map(|record| record.id);
            let Some(grant) = id.and_then(|id| tx.state().grants.get(&id)).cloned() else {
                return Ok(Err(GrantRefusal::Expired));
            };
            match grant.check(&exchange.client, &exchange.redirect_uri, &exchange.code_verifier, now) {
                Ok(()) => {
                    tx.put(&Grant { token: Some(stored.id), ..grant.clone() });
                    let expires_at = grant.token_expires_at.or(stored.expires_at);
                    let token = Token { expires_at, ..stored.clone() };
                    tx.put(&token);
                    Ok(Ok(token))
                }
                Err(refusal) => {
                    if let GrantRefusal::Used(token) = refusal {
                        tx.delete::<Token>(&token);
                    }
                    // Not an error of the transaction: what was revoked must stay so.
                    Ok(Err(refusal))
                }
            }
        });
        let token = outcome.await?.map_err(|refusal| refused(&refusal.to_string()))?;
        Ok(IssuedToken { token, text })
    }
}
