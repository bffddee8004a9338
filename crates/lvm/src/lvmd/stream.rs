//! Streams that end with their client or with the server, so that a stop does not wait for watchers.

use std::pin::Pin;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;

/// What a watching call answers with.
pub(super) type Streamed<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// A stream of what `feed` sends.
#[expect(clippy::disallowed_methods, reason = "one task for each watcher, ended with it or with the server")]
pub(super) fn fed<T, F>(
    stopping: &CancellationToken,
    feed: impl FnOnce(mpsc::Sender<Result<T, Status>>) -> F,
) -> Streamed<T>
where
    T: Send + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(1);
    let (client, stopping) = (sender.clone(), stopping.clone());
    let feeding = feed(sender);
    tokio::spawn(async move {
        tokio::select! {
            () = feeding => {}
            () = client.closed() => {}
            () = stopping.cancelled() => {}
        }
    });
    Box::pin(ReceiverStream::new(receiver))
}
