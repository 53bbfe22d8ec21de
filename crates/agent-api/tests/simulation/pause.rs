//! Processes that are paused, as `SIGSTOP` does it. The events they wait for happen meanwhile; they see them when they
//! go on.

use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use taco_ledger::bucket::{ByteStream, Created, Download, Object};
use taco_ledger::{Bucket, BucketError, Key};
use tokio::time::{Instant, Sleep, sleep_until};

/// End of the pause of a process.
#[derive(Default, Debug)]
pub(crate) struct Pause(Mutex<Option<Instant>>);

impl Pause {
    pub(crate) fn until(&self, instant: Instant) {
        *self.0.lock().expect("no panic") = Some(instant);
    }

    /// A process that is started is not paused.
    pub(crate) fn end(&self) {
        *self.0.lock().expect("no panic") = None;
    }

    fn left(&self) -> Option<Instant> {
        self.0.lock().expect("no panic").filter(|until| Instant::now() < *until)
    }

    /// Returns when the process is awake.
    pub(crate) async fn over(&self) {
        while let Some(until) = self.left() {
            sleep_until(until).await;
        }
    }
}

/// Work of a process, which stands still while that is paused.
pub(crate) struct WhileAwake<F> {
    work: Pin<Box<F>>,
    pause: Arc<Pause>,
    nap: Option<Pin<Box<Sleep>>>,
}

impl<F> WhileAwake<F> {
    pub(crate) fn new(pause: &Arc<Pause>, work: F) -> Self {
        Self { work: Box::pin(work), pause: Arc::clone(pause), nap: None }
    }
}

impl<F: Future> Future for WhileAwake<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        while let Some(until) = self.pause.left() {
            let nap = self.nap.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if nap.deadline() != until {
                nap.as_mut().reset(until);
            }
            if nap.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
        }
        self.nap = None;
        self.work.as_mut().poll(context)
    }
}

/// A process' way to the bucket: what it has sent is done there also while it is paused.
#[derive(Debug)]
pub(crate) struct SeenAwake {
    pub(crate) bucket: Arc<dyn Bucket>,
    pub(crate) pause: Arc<Pause>,
}

impl SeenAwake {
    async fn see<T>(&self, request: impl Future<Output = T>) -> T {
        self.pause.over().await;
        let answer = request.await;
        self.pause.over().await;
        answer
    }
}

#[async_trait]
impl Bucket for SeenAwake {
    async fn create(&self, key: &Key, bytes: Bytes) -> Result<Created, BucketError> {
        self.see(self.bucket.create(key, bytes)).await
    }

    async fn put(&self, key: &Key, bytes: Bytes) -> Result<(), BucketError> {
        self.see(self.bucket.put(key, bytes)).await
    }

    async fn get(&self, key: &Key) -> Result<Option<Object>, BucketError> {
        self.see(self.bucket.get(key)).await
    }

    async fn list(&self, folder: &Key, after: Option<&Key>) -> Result<Vec<Key>, BucketError> {
        self.see(self.bucket.list(folder, after)).await
    }

    async fn folders(&self, folder: &Key) -> Result<Vec<String>, BucketError> {
        self.see(self.bucket.folders(folder)).await
    }

    async fn delete(&self, key: &Key) -> Result<(), BucketError> {
        self.see(self.bucket.delete(key)).await
    }

    async fn upload(&self, key: &Key, body: ByteStream) -> Result<u64, BucketError> {
        self.see(self.bucket.upload(key, body)).await
    }

    async fn download(&self, key: &Key, range: Option<Range<u64>>) -> Result<Option<Download>, BucketError> {
        self.see(self.bucket.download(key, range)).await
    }
}
