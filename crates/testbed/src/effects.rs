//! Effects, counted, and the one at which a process dies. Writes to the API server are counted by the fault hook of the process's
//! client. Other effects — object store, LVM, mover — are counted by whoever stands between the controller and them: a test wraps its
//! `Lvm`, say, so that each operation runs inside [`CrashPoints::effect`].

use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What kind of effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A write to an API server.
    Api,
    /// A write to an object store.
    ObjectStore,
    /// A change of logical volumes.
    Lvm,
    /// Bytes moved.
    Mover,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api => "api",
            Self::ObjectStore => "object store",
            Self::Lvm => "lvm",
            Self::Mover => "mover",
        })
    }
}

/// When a process dies: around an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Right before it: it does not happen.
    Before,
    /// Right after it: it happened, but nobody learns of it.
    After,
}

/// One effect of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// Its kind.
    pub kind: Kind,
    /// What it did, in words.
    pub what: String,
    /// Whether no time passed since the effect before: then dying right before this one is dying right after that one.
    pub at_once: bool,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.what)
    }
}

/// The process is dead: nothing it tries happens any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the process has died")]
pub struct Died;

struct Life {
    seen: Vec<Point>,
    last: Option<Instant>,
    dies_at: Option<(usize, Moment)>,
    dead: bool,
}

/// The effects of one process, from its start to its end; clones count together.
#[derive(Clone)]
pub struct CrashPoints {
    life: Arc<Mutex<Life>>,
    died: CancellationToken,
    after_effect: Arc<dyn Fn() + Send + Sync>,
}

/// What happens to an effect that is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Lives,
    DiesBefore,
    DiesAfter,
}

impl CrashPoints {
    /// A process that lives.
    pub fn counting() -> Self {
        Self::new(None, Arc::new(|| {}))
    }

    pub(crate) fn new(dies_at: Option<(usize, Moment)>, after_effect: Arc<dyn Fn() + Send + Sync>) -> Self {
        let life = Life { seen: Vec::new(), last: None, dies_at, dead: false };
        Self { life: Arc::new(Mutex::new(life)), died: CancellationToken::new(), after_effect }
    }

    /// Performs an effect that is not a write to an API server, counted as one of its kind.
    ///
    /// # Errors
    /// [`Died`] when the process dies here, or has died: the caller must not go on.
    pub async fn effect<T>(
        &self,
        kind: Kind,
        what: impl Into<String>,
        effect: impl Future<Output = T>,
    ) -> Result<T, Died> {
        let fate = self.next(kind, what.into());
        if fate == Fate::DiesBefore {
            return Err(Died);
        }
        let done = effect.await;
        (self.after_effect)();
        if fate == Fate::DiesAfter || self.is_dead() { Err(Died) } else { Ok(done) }
    }

    /// The same for an effect that is a plain call.
    ///
    /// # Errors
    /// As for [`CrashPoints::effect`].
    pub fn call<T>(
        &self,
        kind: Kind,
        what: impl Into<String>,
        effect: impl FnOnce() -> T,
    ) -> Result<T, Died> {
        let fate = self.next(kind, what.into());
        if fate == Fate::DiesBefore {
            return Err(Died);
        }
        let done = effect();
        (self.after_effect)();
        if fate == Fate::DiesAfter { Err(Died) } else { Ok(done) }
    }

    /// Counts an effect that is about to happen and says what becomes of it.
    pub(crate) fn next(&self, kind: Kind, what: String) -> Fate {
        let mut life = self.life.lock();
        if life.dead {
            return Fate::DiesBefore;
        }
        let number = life.seen.len();
        let now = Instant::now();
        let at_once = life.last.replace(now) == Some(now);
        life.seen.push(Point { kind, what, at_once });
        let fate = match life.dies_at {
            Some((at, Moment::Before)) if at == number => Fate::DiesBefore,
            Some((at, Moment::After)) if at == number => Fate::DiesAfter,
            _ => return Fate::Lives,
        };
        life.dead = true;
        self.died.cancel();
        fate
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        self.life.lock().dead
    }

    /// Returns when the process dies.
    pub async fn death(&self) {
        self.died.cancelled().await;
    }

    /// All effects so far.
    pub fn seen(&self) -> Vec<Point> {
        self.life.lock().seen.clone()
    }
}
