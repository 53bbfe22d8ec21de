use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use taco_boxed::boxed;
use taco_domain::history::HistoryRules;
use taco_domain::id::{AgentPoolId, OrganizationId, OrganizationPrefix, UserId};
use taco_domain::organization::OrganizationEntry;
use taco_domain::permission::{Action, Resource};
use taco_domain::secret::{HashKey, Secret, SecretHash};
use taco_domain::site_secret::{HASH_KEY, SiteSecret};
use taco_domain::ssh_key::SshKeyId;
use taco_domain::{Author, OrganizationState, Site};
use taco_ledger::seal::{HEADER, MasterKeys};
use taco_ledger::{
    Blobs, Bucket, Changes, CommitError, Environment, Intent, Ledger, LedgerName, LogChunks, Options, Transaction, View,
};
use taco_tables::{Holds, Record, State as _};
use tokio::sync::OnceCell;

use crate::bound_output_cache::BoundOutputCache;
use crate::caller::{Caller, PrefetchedOrganization, RequestTarget};
use crate::courier::NotificationSettings;
use crate::error::Error;
use crate::find::find;
use crate::graph::echoes::Echoes;
use crate::graph::examiner::ExaminedLedgers;
use crate::graph::output_commits::CountedOutputs;
use crate::history::{HistoryCache, Leftovers};
use crate::load_samples::LoadSamples;
use crate::log_signals::LogSignals;
use crate::outbox::with_deliveries;
use crate::password_queue::PasswordQueue;
use crate::presence::Presence;
use crate::reader_slots::ReaderSlots;
use crate::secret_reads::SecretReads;
use crate::state_cache::StateCache;
use crate::summary_cache::SummaryCache;
use crate::token_guesses::TokenGuesses;
use crate::token_uses::UsesInFlight;
use crate::unreadable::{UnreadableLedger, UnreadableLedgers};
use crate::upload_slots::UploadSlots;
use crate::uploaded_plans::UploadedPlans;
use crate::uploads_under_way::UploadsUnderWay;
use crate::visible::Visible;

/// Settings chosen by the operator of a server.
#[derive(Clone)]
pub struct Settings {
    /// Keys that seal sensitive values before they go to the bucket, which never has the keys.
    pub master_keys: Arc<MasterKeys>,
    /// A text that opens the site as its first admin, for automation (`TACO_SITE_TOKEN`). It is never stored.
    pub site_token: Option<String>,
    pub ledger: Options,
    pub timeouts: Timeouts,
    pub limits: Limits,
    pub history: HistorySettings,
    /// Hosts under which clients know this site, with ports: states and plans name producers by them.
    pub hosts: Vec<String>,
    pub notifications: NotificationSettings,
    /// The program `opa`, with which policies are compiled when they are uploaded; without it, agents find out.
    pub opa: Option<PathBuf>,
}

/// Settings for moving old records out of memory, and limits for reading them back.
#[derive(Clone, Copy, Debug)]
pub struct HistorySettings {
    pub rules: HistoryRules,
    /// So many bytes of catalogs stay in memory; the rest is read again when it is asked for.
    pub cache_bytes: u64,
}

impl Default for HistorySettings {
    fn default() -> Self {
        Self { rules: HistoryRules::default(), cache_bytes: 64 * 1024 * 1024 }
    }
}

/// Limits on what one user may create.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Organizations that a user may have founded; `None` is no limit. Site admins have none.
    pub organizations_per_user: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { organizations_per_user: Some(20) }
    }
}

/// Timeouts of phases.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub plan: SignedDuration,
    pub apply: SignedDuration,
    /// From asking a phase to stop until it may be stopped by force.
    pub before_force: SignedDuration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            plan: SignedDuration::from_hours(2),
            apply: SignedDuration::from_hours(24),
            before_force: SignedDuration::from_secs(60),
        }
    }
}

/// All that callers may do. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct ControlPlane {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) environment: Environment,
    master_keys: Arc<MasterKeys>,
    blobs: Blobs,
    pub(crate) hash_key: HashKey,
    pub(crate) site_token: Option<SecretHash>,
    /// The user that a caller without a login or with the site's token is, if that is not the first admin.
    pub(crate) claimed_author: OnceLock<UserId>,
    pub(crate) site: Ledger<Site>,
    /// Opened when they are first asked for.
    pub(crate) organizations: Mutex<HashMap<OrganizationId, Arc<OnceCell<Ledger<OrganizationState>>>>>,
    ledger_options: Options,
    pub(crate) unreadable: UnreadableLedgers,
    pub(crate) summaries: SummaryCache,
    pub(crate) bound_outputs: BoundOutputCache,
    pub(crate) archive_readers: ReaderSlots,
    pub(crate) state_readers: ReaderSlots,
    pub(crate) state_cache: StateCache,
    pub(crate) uploads_under_way: UploadsUnderWay,
    pub(crate) upload_slots: UploadSlots,
    pub(crate) password_queue: PasswordQueue,
    pub(crate) token_guesses: TokenGuesses,
    pub(crate) uses_in_flight: UsesInFlight,
    pub(crate) presence: Presence,
    pub(crate) load_samples: LoadSamples,
    pub(crate) uploaded_plans: UploadedPlans,
    pub(crate) secret_reads: SecretReads,
    pub(crate) logs: LogChunks,
    pub(crate) log_signals: LogSignals,
    pub(crate) timeouts: Timeouts,
    pub(crate) limits: Limits,
    pub(crate) history: HistoryCache,
    pub(crate) history_rules: HistoryRules,
    pub(crate) leftovers: Leftovers,
    /// Hosts under which this site is known, in addresses of states.
    pub(crate) hosts: Vec<String>,
    pub(crate) notifications: NotificationSettings,
    pub(crate) opa: Option<PathBuf>,
    pub(crate) examined_ledgers: ExaminedLedgers,
    pub(crate) counted_outputs: CountedOutputs,
    pub(crate) echoes: Echoes,
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ControlPlane").field("site", &self.shared.site).finish_non_exhaustive()
    }
}

/// Versions of the ledgers that a response is based on. Anything derived from them alone is the same at the same
/// moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Moment {
    pub site: u64,
    pub organization: u64,
}

/// An organization as it was at one moment within the request. Doors see what [`Self::visible_to`] and the views of its
/// parts show; only verbs change it.
#[derive(Clone)]
pub struct OrganizationSnapshot {
    site: View<Site>,
    id: OrganizationId,
    pub(crate) state: View<OrganizationState>,
    pub(crate) ledger: Ledger<OrganizationState>,
    unreadable: UnreadableLedgers,
}

#[boxed]
impl OrganizationSnapshot {
    pub fn id(&self) -> OrganizationId {
        self.id
    }

    pub fn moment(&self) -> Moment {
        Moment { site: self.site.seq(), organization: self.state.seq() }
    }

    /// The site as it was then.
    pub(crate) fn site(&self) -> &View<Site> {
        &self.site
    }

    /// Its name and how it began.
    pub fn entry(&self) -> &OrganizationEntry {
        self.site.organizations.get(&self.id).expect("it was found in this very view")
    }

    pub fn resource(&self) -> Resource<'_> {
        Resource::Organization(&self.state)
    }

    /// View of it that is limited to what a caller may see.
    pub fn visible_to<'a>(&'a self, caller: &'a Caller) -> Visible<'a> {
        Visible::new(&self.state, caller)
    }

    /// Number of workspaces that use an SSH key.
    pub fn workspaces_with_key(&self, key: &SshKeyId) -> usize {
        self.state.workspaces.by().ssh_key.get(key).count()
    }

    pub fn has_agent_pool(&self, id: &AgentPoolId) -> bool {
        self.state.agent_pools.contains(id)
    }

    pub fn workspace_count(&self) -> usize {
        self.state.workspaces.len()
    }

    /// Number of resources that its workspaces manage together.
    pub fn resource_count(&self) -> u64 {
        self.state.workspaces.iter().map(|workspace| workspace.resource_count).sum()
    }

    /// The record with this id.
    pub(crate) fn get<R: Record>(&self, id: &R::Id) -> Result<&R, Error>
    where
        OrganizationState: Holds<R>,
    {
        find(&*self.state, id, R::NOUN)
    }

    /// The same organization as this server last saw it, at no cost: for hints, never for an answer.
    pub(crate) fn last_seen(&self) -> View<OrganizationState> {
        self.ledger.last_seen()
    }

    /// Wakes all who wait on it when this server has seen a change.
    pub fn changes(&self) -> Changes<OrganizationState> {
        self.ledger.changes()
    }

    /// Looks whether another server changed something.
    pub async fn look(&self) -> Result<(), Error> {
        let read = self.ledger.read().await;
        self.unreadable.note(Some(self.id), &read);
        read?;
        Ok(())
    }

    /// Display name of someone who did something here; the id if they are gone.
    pub fn name_of(&self, author: &Author) -> String {
        let name = match author {
            Author::User(id) => self.site.users.get(id).map(|user| user.username.to_string()),
            Author::Team(id) => self.state.teams.get(id).map(|team| team.name.to_string()),
            Author::Organization(_) => Some(self.entry().name.to_string()),
            Author::AgentPool(id) => self.state.agent_pools.get(id).map(|pool| pool.name.to_string()),
            Author::Run(_) | Author::Taco => None,
        };
        name.unwrap_or_else(|| author.to_string())
    }

    /// Changes it, and returns what `decide` decided. `decide` may run several times; see [`Ledger::commit`]. What is to be
    /// told of it is put in the same transaction.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        intent: Intent,
        decide: impl FnMut(&mut Transaction<OrganizationState>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let done = self.ledger.commit(intent, with_deliveries(decide)).await;
        if let Err(CommitError::Ledger(
            error @ (taco_ledger::Error::Corrupt { .. } | taco_ledger::Error::NewerFormat { .. }),
        )) = &done
        {
            self.unreadable.note_failure(Some(self.id), error);
        }
        Ok(done?)
    }
}

#[boxed]
impl ControlPlane {
    /// Opens the site's ledger; organizations follow when they are asked for.
    pub(crate) async fn open(environment: Environment, settings: Settings) -> Result<Self, Error> {
        let ledger_options = Options { keys: Some(Arc::clone(&settings.master_keys)), ..settings.ledger };
        let site = Ledger::open(environment.clone(), LedgerName::site(), ledger_options.clone()).await?;
        let hash_key = site_key(&site, &environment, &settings.master_keys).await?;
        let site_token = settings.site_token.as_deref().map(|text| hash_key.hash("site-token", text));
        let logs = LogChunks::new(Arc::clone(&environment.bucket), environment.rng.clone());
        Ok(Self {
            shared: Arc::new(Shared {
                blobs: Blobs::new(Arc::clone(&environment.bucket), Some(Arc::clone(&settings.master_keys))),
                unreadable: UnreadableLedgers::new(Arc::clone(&environment.clock)),
                environment,
                master_keys: settings.master_keys,
                hash_key,
                site_token,
                claimed_author: OnceLock::new(),
                site,
                organizations: Mutex::default(),
                ledger_options,
                summaries: SummaryCache::default(),
                bound_outputs: BoundOutputCache::default(),
                archive_readers: ReaderSlots::default(),
                state_cache: StateCache::default(),
                state_readers: ReaderSlots::default(),
                uploads_under_way: UploadsUnderWay::default(),
                upload_slots: UploadSlots::default(),
                password_queue: PasswordQueue::default(),
                token_guesses: TokenGuesses::default(),
                uses_in_flight: UsesInFlight::default(),
                presence: Presence::default(),
                load_samples: LoadSamples::default(),
                uploaded_plans: UploadedPlans::default(),
                secret_reads: SecretReads::default(),
                logs,
                log_signals: LogSignals::default(),
                timeouts: settings.timeouts,
                limits: settings.limits,
                history: HistoryCache::new(settings.history.cache_bytes),
                history_rules: settings.history.rules,
                leftovers: Leftovers::default(),
                hosts: settings.hosts,
                notifications: settings.notifications,
                opa: settings.opa,
                examined_ledgers: ExaminedLedgers::default(),
                counted_outputs: CountedOutputs::default(),
                echoes: Echoes::default(),
            }),
        })
    }

    /// Number of records that this version cannot read, in the ledgers that this server has opened.
    pub(crate) fn unreadable_records(&self) -> usize {
        let organizations = self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = organizations.values().filter_map(|cell| cell.get());
        let in_organizations: usize = opened.map(|ledger| ledger.last_seen().set_aside().len()).sum();
        in_organizations + self.shared.site.last_seen().set_aside().len()
    }

    /// The organizations that this server has open, as it last saw them.
    pub(crate) fn organizations_in_memory(&self) -> Vec<OrganizationSnapshot> {
        let site = self.shared.site.last_seen();
        let organizations = self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = organizations.iter().filter_map(|(id, cell)| Some((*id, cell.get()?.clone())));
        let known = opened.filter(|(id, _)| site.organizations.contains(id));
        known.map(|(id, ledger)| self.opened(site.clone(), id, ledger.last_seen(), ledger)).collect()
    }

    /// The site's time, which doors show to people and reckon with.
    pub fn now(&self) -> Timestamp {
        self.shared.environment.clock.now()
    }

    /// Randomness for an id.
    pub(crate) fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        self.shared.environment.rng.fill(&mut bytes);
        bytes
    }

    pub(crate) fn secret(&self) -> Secret {
        let mut bytes = [0; 32];
        self.shared.environment.rng.fill(&mut bytes);
        Secret::from_random(bytes)
    }

    pub(crate) fn hash_key(&self) -> &HashKey {
        &self.shared.hash_key
    }

    /// Seals a small sensitive text for a record. `name` is bound into it: it opens under the same name alone.
    pub(crate) fn seal(&self, name: &str, plain: &str) -> String {
        STANDARD.encode(self.shared.master_keys.seal_bytes(name, plain.as_bytes()))
    }

    /// Opens what [`Self::seal`] made under the same name.
    pub(crate) fn unseal(&self, name: &str, sealed: &str) -> Result<String, Error> {
        let plain = open_sealed(&self.shared.master_keys, name, sealed)?;
        String::from_utf8(plain).map_err(|_| unreadable(name, "it is no text"))
    }

    /// Value from [`Self::seal`] of the same name, rewrapped with the current master key; `None` if it already is.
    pub(crate) fn rewrap(&self, name: &str, sealed: &str) -> Result<Option<String>, Error> {
        let keys = &self.shared.master_keys;
        let sealed = STANDARD.decode(sealed).map_err(|error| unreadable(name, error))?;
        let (header, pieces) = sealed.split_at_checked(HEADER).ok_or_else(|| unreadable(name, "it is too short"))?;
        if !keys.needs_rewrap(name, header).map_err(|error| unreadable(name, error))? {
            return Ok(None);
        }
        let header = keys.rewrap(name, header).map_err(|error| unreadable(name, error))?;
        Ok(Some(STANDARD.encode([&header[..], pieces].concat())))
    }

    pub(crate) fn bucket(&self) -> &Arc<dyn Bucket> {
        &self.shared.environment.bucket
    }

    /// Store of large objects.
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.shared.blobs
    }

    /// Audit entry for a change that taco makes by itself.
    pub(crate) fn own_intent(action: &'static str) -> Intent {
        Intent { actor: Author::Taco.to_string(), action, request: None }
    }

    pub(crate) async fn read_site(&self) -> Result<View<Site>, Error> {
        let site = self.shared.site.read().await;
        self.shared.unreadable.note(None, &site);
        Ok(site?)
    }

    /// The ledgers that could not be read when this server last looked. An organization among them harms no other.
    pub fn unreadable_ledgers(&self) -> Vec<UnreadableLedger> {
        self.shared.unreadable.list()
    }

    pub(crate) async fn commit_site<T: Send + 'static>(
        &self,
        intent: Intent,
        decide: impl FnMut(&mut Transaction<Site>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        Ok(self.shared.site.commit(intent, decide).await?)
    }

    /// The organization of this name, if the caller may know of it.
    pub async fn organization_named(&self, caller: &Caller, name: &str) -> Result<OrganizationSnapshot, Error> {
        let id = caller.site.organization_named(name).map(|entry| entry.id);
        self.organization_for(caller, id.ok_or(Error::NotFound("organization"))?, "organization").await
    }

    /// The organization that an id in a path belongs to, if the caller may know of it. `what` is what the path names:
    /// a caller who may not know of the organization learns only that this is not found.
    pub async fn authorized_organization(
        &self,
        caller: &Caller,
        prefix: OrganizationPrefix,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        let id = caller.site.organization_at(prefix).map(|entry| entry.id);
        self.organization_for(caller, id.ok_or(Error::NotFound(what))?, what).await
    }

    /// The organization that an id belongs to, for a transaction that decides everything by itself: if what was last
    /// seen lets the caller in, the ledger is not read before the transaction.
    pub(crate) async fn authorized_from_cache(
        &self,
        caller: &Caller,
        prefix: OrganizationPrefix,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        let id = caller.site.organization_at(prefix).map(|entry| entry.id).ok_or(Error::NotFound(what))?;
        let ledger = self.organization_ledger(id).await?;
        let state = ledger.last_seen();
        let seen = self.opened(caller.site.clone(), id, state, ledger);
        let is_known = seen.state.organization().is_some();
        if is_known && caller.may(Action::ReadOrganization, seen.resource()).allowed {
            return Ok(seen);
        }
        self.organization_for(caller, id, what).await
    }

    /// Number of the organization's newest commit that this server knows of, if the caller may know of the organization.
    /// The bucket is not asked: other servers' commits are known after the next round of beacons. For hints, as whether
    /// a page is worth rendering again.
    pub async fn newest_commit_seen(&self, caller: &Caller, name: &str) -> Result<u64, Error> {
        let what = "organization";
        let id = caller.site.organization_named(name).map(|entry| entry.id).ok_or(Error::NotFound(what))?;
        let org = self.authorized_from_cache(caller, id.organization_prefix(), what).await?;
        Ok(org.state.seq())
    }

    async fn organization_for(
        &self,
        caller: &Caller,
        id: OrganizationId,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        let organization = match caller.prefetched.take(id) {
            Some(state) => {
                let ledger = self.organization_ledger(id).await?;
                self.opened(caller.site.clone(), id, state, ledger)
            }
            None => self.open_organization(&caller.site, id).await?,
        };
        caller.require(Action::ReadOrganization, organization.resource(), what)?;
        Ok(organization)
    }

    /// Looks at an organization that was opened before, if the request is about one.
    pub(crate) async fn prefetch(&self, about: Option<RequestTarget>) -> PrefetchedOrganization {
        let seen = self.shared.site.last_seen();
        let entry = match &about {
            Some(RequestTarget::Named(name)) => seen.organization_named(name),
            Some(RequestTarget::At(prefix)) => seen.organization_at(*prefix),
            None => None,
        };
        let Some((id, ledger)) = entry.and_then(|entry| Some((entry.id, self.opened_ledger(entry.id)?))) else {
            return PrefetchedOrganization::default();
        };
        match ledger.read().await {
            Ok(state) if state.organization().is_some() => PrefetchedOrganization::of(id, state),
            // A request that needs it reads again, and gets the error.
            _ => PrefetchedOrganization::default(),
        }
    }

    /// Opens an organization that `site` knows, without asking who wants it.
    pub(crate) async fn open_organization(
        &self,
        site: &View<Site>,
        id: OrganizationId,
    ) -> Result<OrganizationSnapshot, Error> {
        let entry = site.organizations.get(&id).ok_or(Error::NotFound("organization"))?;
        let (ledger, mut state) = self.read_organization(id).await?;
        if state.organization().is_none() {
            begin(&ledger, entry).await?;
            state = ledger.read().await?;
        }
        Ok(self.opened(site.clone(), id, state, ledger))
    }

    /// The organization that an id belongs to, without asking who wants it. Site and organization are looked at at once,
    /// because to a far bucket each look is a long way.
    pub(crate) async fn organization_unchecked(
        &self,
        prefix: OrganizationPrefix,
        what: &'static str,
    ) -> Result<OrganizationSnapshot, Error> {
        // What was last seen is a guess; the look at the site judges it.
        let guess = self.shared.site.last_seen().organization_at(prefix).map(|entry| entry.id);
        let prefetch = async {
            let Some(id) = guess else { return Ok(None) };
            Ok::<_, Error>(Some(self.read_organization(id).await?))
        };
        let (site, prefetched) = tokio::join!(self.read_site(), prefetch);
        let site = site?;
        let id = site.organization_at(prefix).map(|entry| entry.id).ok_or(Error::NotFound(what))?;
        if guess == Some(id)
            && let Some((ledger, state)) = prefetched?
            && state.organization().is_some()
        {
            return Ok(self.opened(site, id, state, ledger));
        }
        self.open_organization(&site, id).await
    }

    fn opened(
        &self,
        site: View<Site>,
        id: OrganizationId,
        state: View<OrganizationState>,
        ledger: Ledger<OrganizationState>,
    ) -> OrganizationSnapshot {
        OrganizationSnapshot { site, id, state, ledger, unreadable: self.shared.unreadable.clone() }
    }

    /// Reads an organization's ledger, and notes whether that can be done.
    async fn read_organization(
        &self,
        id: OrganizationId,
    ) -> Result<(Ledger<OrganizationState>, View<OrganizationState>), Error> {
        let ledger = self.organization_ledger(id).await?;
        let state = ledger.read().await;
        self.shared.unreadable.note(Some(id), &state);
        Ok((ledger, state?))
    }

    async fn organization_ledger(&self, id: OrganizationId) -> Result<Ledger<OrganizationState>, Error> {
        let cell = {
            let mut organizations = self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(organizations.entry(id).or_default())
        };
        let org = || async {
            let name = id.to_string().parse::<LedgerName>().expect("an id is a legal name");
            Ledger::open(self.shared.environment.clone(), name, self.shared.ledger_options.clone()).await
        };
        match cell.get_or_try_init(org).await {
            Ok(ledger) => Ok(ledger.clone()),
            Err(error) => {
                self.shared.unreadable.note_failure(Some(id), &error);
                Err(error.into())
            }
        }
    }

    fn opened_ledger(&self, id: OrganizationId) -> Option<Ledger<OrganizationState>> {
        let organizations = self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner);
        organizations.get(&id).and_then(|cell| cell.get()).cloned()
    }

    /// The organization that an id belongs to as this server last saw it, at no cost: for hints, never for an answer.
    pub(crate) fn organization_last_seen(&self, prefix: OrganizationPrefix) -> Option<OrganizationSnapshot> {
        let site = self.shared.site.last_seen();
        let id = site.organization_at(prefix)?.id;
        let ledger = self.opened_ledger(id)?;
        Some(self.opened(site, id, ledger.last_seen(), ledger))
    }

    /// Lets go of an organization's ledger; the next who asks opens it anew.
    pub(crate) fn forget_organization(&self, id: OrganizationId) {
        self.shared.organizations.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.shared.unreadable.strike_off(Some(id));
    }
}

/// The key under which secrets are hashed: made by the first server, sealed with the current master key.
async fn site_key(site: &Ledger<Site>, environment: &Environment, keys: &MasterKeys) -> Result<HashKey, Error> {
    let mut fresh = [0; 32];
    environment.rng.fill(&mut fresh);
    let fresh = SiteSecret { name: HASH_KEY.to_owned(), sealed: STANDARD.encode(keys.seal_bytes(HASH_KEY, &fresh)) };
    let stored = site.commit(ControlPlane::own_intent("site.make-key"), move |tx| -> Result<SiteSecret, Error> {
        if let Some(stored) = tx.state().secrets.get(&fresh.name) {
            return Ok(stored.clone());
        }
        tx.put(&fresh);
        Ok(fresh.clone())
    });
    let stored = stored.await?;
    let key = open_sealed(keys, HASH_KEY, &stored.sealed)?;
    let key = <[u8; 32]>::try_from(key).map_err(|_| unreadable(HASH_KEY, "it has a wrong length"))?;
    if needs_new_seal(keys, &stored.sealed) {
        let renewed = SiteSecret { sealed: STANDARD.encode(keys.seal_bytes(HASH_KEY, &key)), ..stored.clone() };
        let renew = site.commit(ControlPlane::own_intent("site.rewrap-key"), move |tx| -> Result<(), Error> {
            // Another server may have done it; its seal is as good.
            if tx.state().secrets.get(&stored.name) == Some(&stored) {
                tx.put(&renewed);
            }
            Ok(())
        });
        renew.await?;
    }
    Ok(HashKey::new(key))
}

fn needs_new_seal(keys: &MasterKeys, sealed: &str) -> bool {
    let sealed = STANDARD.decode(sealed).unwrap_or_default();
    keys.needs_rewrap(HASH_KEY, &sealed[..sealed.len().min(HEADER)]).unwrap_or(false)
}

fn open_sealed(keys: &MasterKeys, name: &str, sealed: &str) -> Result<Vec<u8>, Error> {
    let sealed = STANDARD.decode(sealed).map_err(|error| unreadable(name, error))?;
    keys.open_bytes(name, &sealed).map_err(|error| unreadable(name, error))
}

fn unreadable(name: &str, why: impl fmt::Display) -> Error {
    Error::Sealed(format!("the secret {name} cannot be opened: {why}"))
}

/// Writes the first commit of an organization's ledger. Any server may: all derive the same records.
async fn begin(ledger: &Ledger<OrganizationState>, entry: &OrganizationEntry) -> Result<(), Error> {
    let first = entry.first_records();
    let intent = Intent { actor: entry.founder.to_string(), action: "organization.begin", request: None };
    let done = ledger.commit(intent, move |tx| -> Result<(), Error> {
        if tx.state().organization().is_none() {
            tx.put(&first.organization);
            tx.put(&first.default_project);
            tx.put(&first.owners);
            tx.put(&first.founder);
        }
        Ok(())
    });
    Ok(done.await?)
}
