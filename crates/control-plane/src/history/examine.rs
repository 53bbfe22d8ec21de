//! Reading all of an organization's history, for `taco doctor`.

use std::sync::Arc;

use taco_domain::OrganizationState;
use taco_domain::history::HistorySegment;
use taco_ledger::{Bucket, LedgerName};
use taco_tables::State as _;

use super::parts::{HistoryCache, HistoryReader, Located, Part, PartName};
use super::rows::Masked;
use crate::error::Error;

/// So many bundles are in memory at a time.
const AT_A_TIME: usize = 500;

/// An organization's history as it lies in the bucket, read from one end to the other.
pub struct HistoryInBucket<'a> {
    bucket: &'a Arc<dyn Bucket>,
    ledger: &'a LedgerName,
    state: &'a OrganizationState,
    cache: HistoryCache,
}

/// Reads what an organization's state says is in its history.
pub fn read_history<'a>(
    bucket: &'a Arc<dyn Bucket>,
    ledger: &'a LedgerName,
    state: &'a OrganizationState,
) -> HistoryInBucket<'a> {
    HistoryInBucket { bucket, ledger, state, cache: HistoryCache::new(1) }
}

impl HistoryInBucket<'_> {
    fn reader(&self) -> HistoryReader<'_> {
        HistoryReader { bucket: self.bucket, ledger: self.ledger, cache: &self.cache }
    }

    pub fn segments(&self) -> impl Iterator<Item = &HistorySegment> {
        self.state.history_segments.iter()
    }

    /// Where the bundles of a segment lie, a few at a time. Every part of the segment is read and compared.
    pub async fn places(&self, segment: &HistorySegment) -> Result<Vec<Vec<(String, taco_history::Place)>>, Error> {
        let masked = Masked::of(self.state);
        let mut places: Vec<Located> = Vec::new();
        for name in PartName::ALL {
            if let Some(Part::Catalog(catalog)) = self.reader().part(segment, name).await? {
                let counting = catalog.rows().filter(|row| !masked.is_row(&catalog, row));
                places.extend(counting.map(|row| (catalog.page(row.place).to_owned(), row.place)));
            }
        }
        places.sort();
        places.dedup();
        Ok(places.chunks(AT_A_TIME).map(<[_]>::to_vec).collect())
    }

    /// The records of bundles, and nothing else.
    pub async fn records(&self, places: Vec<(String, taco_history::Place)>) -> Result<OrganizationState, Error> {
        let bundles = self.reader().bundles(places).await?;
        let mut records = OrganizationState::default();
        bundles.iter().for_each(|(_, bundle)| records.lay_over(bundle));
        Ok(records)
    }
}
