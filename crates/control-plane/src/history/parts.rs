//! The parts of segments, as they lie in the bucket, and a cache of those that were read lately.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use quick_cache::Weighter;
use quick_cache::unsync::Cache;
use sha2::{Digest, Sha256};
use taco_domain::OrganizationState;
use taco_domain::history::HistorySegment;
use taco_history::{Bundle, BundleReader, Catalog, IdIndex, Malformed, Place, Texts};
use taco_ledger::{Bucket, BucketError, Key, LedgerName, ObjectRange, layout};
use taco_tables::{LooseRecords, State as _};

use crate::blob_error::blob_error;
use crate::error::Error;

/// So many parts are asked for together.
const AT_ONCE: usize = 16;
/// Bundles that lie so near to each other are read with one request.
const NEAR: u32 = 32 * 1024;
/// For the cache's own book-keeping: most parts are about this large.
const USUAL_PART: u64 = 256 * 1024;
/// Usual size of a bundle in the cache.
const USUAL_BUNDLE: u64 = 4 * 1024;
/// Divisor for the part of the cache that bundles get; the rest is for catalogs and indexes.
const BUNDLE_CACHE_DIVISOR: u64 = 8;

/// What a segment consists of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum PartName {
    Runs,
    StateVersions,
    ConfigurationVersions,
    /// Messages of runs, in the order of `Runs`.
    Texts,
    Comments,
    Outputs,
}

impl PartName {
    pub(super) const ALL: [Self; 6] =
        [Self::Runs, Self::StateVersions, Self::ConfigurationVersions, Self::Texts, Self::Comments, Self::Outputs];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Runs => HistorySegment::RUNS,
            Self::StateVersions => "state-versions",
            Self::ConfigurationVersions => "configuration-versions",
            Self::Texts => "texts",
            Self::Comments => "comments",
            Self::Outputs => "outputs",
        }
    }
}

/// A part that was read.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Catalog(Arc<Catalog>),
    Index(Arc<IdIndex>),
    Texts(Arc<Texts>),
}

impl Part {
    fn decode(name: PartName, bytes: &[u8]) -> Result<Self, Malformed> {
        Ok(match name {
            PartName::Runs | PartName::StateVersions | PartName::ConfigurationVersions => {
                Self::Catalog(Arc::new(Catalog::decode(bytes)?))
            }
            PartName::Comments | PartName::Outputs => Self::Index(Arc::new(IdIndex::decode(bytes)?)),
            PartName::Texts => Self::Texts(Arc::new(Texts::decode(bytes)?)),
        })
    }

    fn weight(&self) -> u64 {
        let bytes = match self {
            Self::Catalog(catalog) => catalog.weight(),
            Self::Index(index) => index.weight(),
            Self::Texts(texts) => texts.weight(),
        };
        bytes.max(1) as u64
    }
}

/// Parts and bundles that were read lately, within a bound.
pub(crate) struct HistoryCache {
    parts: Mutex<Cache<Key, Part, ByWeight>>,
    bundles: Mutex<Cache<Located, Arc<LooseRecords>, ByWeight>>,
}

#[derive(Clone)]
struct ByWeight;

impl Weighter<Key, Part> for ByWeight {
    fn weight(&self, _: &Key, part: &Part) -> u64 {
        part.weight()
    }
}

impl Weighter<Located, Arc<LooseRecords>> for ByWeight {
    fn weight(&self, (page, _): &Located, bundle: &Arc<LooseRecords>) -> u64 {
        (page.len() + bundle.weight()) as u64
    }
}

impl HistoryCache {
    pub(crate) fn new(bytes: u64) -> Self {
        let of_bundles = bytes / BUNDLE_CACHE_DIVISOR;
        let of_parts = bytes - of_bundles;
        let items = |bytes: u64, usual: u64| usize::try_from(bytes / usual).unwrap_or_default().max(16);
        Self {
            parts: Mutex::new(Cache::with_weighter(items(of_parts, USUAL_PART), of_parts, ByWeight)),
            bundles: Mutex::new(Cache::with_weighter(items(of_bundles, USUAL_BUNDLE), of_bundles, ByWeight)),
        }
    }

    fn parts(&self) -> MutexGuard<'_, Cache<Key, Part, ByWeight>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bundles(&self) -> MutexGuard<'_, Cache<Located, Arc<LooseRecords>, ByWeight>> {
        self.bundles.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads an organization's history.
#[derive(Clone, Copy)]
pub(super) struct HistoryReader<'a> {
    pub(super) bucket: &'a Arc<dyn Bucket>,
    pub(super) ledger: &'a LedgerName,
    pub(super) cache: &'a HistoryCache,
}

/// A bundle's page and its place there.
pub(super) type Located = (String, Place);

impl HistoryReader<'_> {
    /// A part of each segment that has it, in the order of segments.
    pub(super) async fn parts(&self, state: &OrganizationState, name: PartName) -> Result<Vec<Part>, Error> {
        let segments = state.history_segments.iter();
        // Most are in the cache, and then there is nothing to wait for.
        let mut parts: Vec<Option<Part>> = Vec::new();
        let mut missing: Vec<(usize, HistorySegment)> = Vec::new();
        for segment in segments.filter(|segment| segment.parts.contains_key(name.as_str())) {
            let part = self.cache.parts().get(&self.key_of(segment, name)).cloned();
            if part.is_none() {
                missing.push((parts.len(), segment.clone()));
            }
            parts.push(part);
        }
        let read = |(index, segment): (usize, HistorySegment)| async move {
            Ok::<_, Error>((index, self.part(&segment, name).await?))
        };
        let mut read = stream::iter(missing.into_iter().map(read)).buffer_unordered(AT_ONCE);
        while let Some((index, part)) = read.try_next().await? {
            parts[index] = part;
        }
        drop(read);
        Ok(parts.into_iter().flatten().collect())
    }

    fn key_of(&self, segment: &HistorySegment, name: PartName) -> Key {
        layout::history_part(self.ledger, &segment.id.to_string(), name.as_str())
    }

    pub(super) async fn catalogs(&self, state: &OrganizationState, name: PartName) -> Result<Vec<Arc<Catalog>>, Error> {
        let parts = self.parts(state, name).await?.into_iter();
        Ok(parts.filter_map(|part| if let Part::Catalog(catalog) = part { Some(catalog) } else { None }).collect())
    }

    pub(super) async fn indexes(&self, state: &OrganizationState, name: PartName) -> Result<Vec<Arc<IdIndex>>, Error> {
        let parts = self.parts(state, name).await?.into_iter();
        Ok(parts.filter_map(|part| if let Part::Index(index) = part { Some(index) } else { None }).collect())
    }

    pub(super) async fn texts(&self, state: &OrganizationState) -> Result<Vec<Arc<Texts>>, Error> {
        let parts = self.parts(state, PartName::Texts).await?.into_iter();
        Ok(parts.filter_map(|part| if let Part::Texts(texts) = part { Some(texts) } else { None }).collect())
    }

    pub(super) async fn part(&self, segment: &HistorySegment, name: PartName) -> Result<Option<Part>, Error> {
        let Some(expected) = segment.parts.get(name.as_str()) else { return Ok(None) };
        let key = self.key_of(segment, name);
        if let Some(part) = self.cache.parts().get(&key).cloned() {
            return Ok(Some(part));
        }
        let object = self.bucket.get(&key).await.map_err(unavailable)?;
        let object = object.ok_or_else(|| damaged(&key, "it is missing"))?;
        if hex::encode(Sha256::digest(&object.bytes)) != expected.sha256 {
            return Err(damaged(&key, "it is not what was written there"));
        }
        let part = Part::decode(name, &object.bytes).map_err(|error| damaged(&key, &error.0))?;
        self.cache.parts().insert(key, part.clone());
        Ok(Some(part))
    }

    /// The records of the bundles that lie at these places, in whatever order. Those that lie close together are read together,
    /// and all of them at once.
    pub(super) async fn bundles(&self, mut places: Vec<Located>) -> Result<Vec<(Located, Arc<LooseRecords>)>, Error> {
        places.sort();
        places.dedup();
        let mut found = Vec::new();
        places.retain(|located| match self.cache.bundles().get(located) {
            Some(bundle) => {
                found.push((located.clone(), Arc::clone(bundle)));
                false
            }
            None => true,
        });
        let mut stretches: Vec<Vec<Located>> = Vec::new();
        for located in places {
            match stretches.last_mut() {
                Some(stretch) if is_near(stretch.last(), &located) => stretch.push(located),
                _ => stretches.push(vec![located]),
            }
        }
        if !stretches.is_empty() {
            self.read_stretches(stretches, &mut found).await?;
        }
        Ok(found)
    }

    async fn read_stretches(
        &self,
        stretches: Vec<Vec<Located>>,
        found: &mut Vec<(Located, Arc<LooseRecords>)>,
    ) -> Result<(), Error> {
        let ranges: Vec<ObjectRange> = stretches.iter().filter_map(|stretch| self.range_of(stretch)).collect();
        let read = self.bucket.ranges(&ranges).await.map_err(unavailable)?;
        let mut reader: Option<BundleReader> = None;
        for ((stretch, (key, range)), bytes) in stretches.into_iter().zip(ranges).zip(read) {
            let bytes = bytes.ok_or_else(|| damaged(&key, "it is missing"))?;
            for located in stretch {
                let place = located.1;
                let from = (u64::from(place.offset) - range.start) as usize;
                let bytes = bytes.get(from..from + place.length as usize).unwrap_or_default();
                let broken = |error: Malformed| damaged(&key, &error.0);
                let reader = match &mut reader {
                    Some(reader) => reader,
                    none => none.insert(BundleReader::new().map_err(broken)?),
                };
                let bundle = Arc::new(loose(&reader.read(place, bytes).map_err(broken)?));
                self.cache.bundles().insert(located.clone(), Arc::clone(&bundle));
                found.push((located, bundle));
            }
        }
        Ok(())
    }

    /// Where the bundles of a stretch lie, all of them on one page.
    fn range_of(&self, stretch: &[Located]) -> Option<ObjectRange> {
        let ((page, first), (_, last)) = (stretch.first()?, stretch.last()?);
        let range = u64::from(first.offset)..u64::from(last.offset) + u64::from(last.length);
        Some((layout::history_page(self.ledger, page), range))
    }
}

/// The records of a bundle as they are laid over a state.
fn loose(bundle: &Bundle) -> LooseRecords {
    let mut loose = LooseRecords::default();
    for (key, value) in &bundle.records {
        OrganizationState::read_loose(&mut loose, key, value);
    }
    loose
}

/// The records of a bundle in tables, and nothing else.
pub(super) fn tables_of(bundle: &LooseRecords) -> OrganizationState {
    let mut tables = OrganizationState::default();
    tables.lay_over(bundle);
    tables
}

fn is_near(before: Option<&Located>, next: &Located) -> bool {
    before.is_some_and(|(page, place)| {
        *page == next.0 && next.1.offset.saturating_sub(place.offset.saturating_add(place.length)) <= NEAR
    })
}

pub(super) fn unavailable(error: BucketError) -> Error {
    blob_error(error.into())
}

pub(super) fn damaged(key: &Key, why: &str) -> Error {
    Error::Corrupt(taco_ledger::Error::Corrupt { object: key.clone(), why: why.to_owned() })
}
