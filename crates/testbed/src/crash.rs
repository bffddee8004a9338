//! Crash at every write: a story is told once to see its effects, then once for each effect with the process dying right
//! before it, and once right after it with the answer lost. (Where no time passed between two effects, dying before the second is dying
//! after the first, and is told once.) The process is then started again on the same cluster, and the story must end as if nothing had
//! happened.
//!
//! Dying means what `kill -9` means: the controller's future is dropped, and nothing that it still tries happens. (What it had
//! spawned would live on; the engine spawns nothing.)

use crate::account;
use crate::cluster::{Cluster, Task};
use crate::effects::{CrashPoints, Kind, Moment, Point};
use crate::faults::Counted;
use crate::scene::{Follower, Scene};
use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lifeboat_apiserver::User;
use lifeboat_engine::Clock;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// What is wrong where nobody died.
const DID_NOT_COME: &str = "the effect it was to die at did not come again";
/// How often a story with threads is told until the effect comes that somebody is to die at.
const TELLINGS: usize = 5;
/// How often such a story is told without a death. A thread that is late once causes a write that hardly ever comes again, so the shortest counts.
const WITHOUT_DEATH: usize = 3;

/// One life of the process under test: what its controller is given.
pub struct Process<W> {
    /// A client whose writes are counted, and fail once the process is dead.
    pub client: kube::Client,
    /// The cluster's clock.
    pub clock: Clock,
    /// Counts the effects that are no writes to the API server.
    pub points: CrashPoints,
    /// What the story has beside the cluster; it outlives the process, as disks do.
    pub world: W,
}

type Controller<W> = Box<dyn Fn(Process<W>) -> BoxFuture<'static, ()> + Send + Sync>;
type Story<W> = Box<dyn Fn(Cluster, W) -> BoxFuture<'static, ()> + Send + Sync>;
type Check<W> = Box<dyn Fn(&Scene<'_, W>) -> Result<(), String> + Send + Sync>;

/// The effects of the first life, and the end.
type Telling = (Vec<Point>, BTreeMap<String, Value>);
/// A telling, or what is wrong with it.
type Told = Result<Telling, String>;

/// A story to be told with a crash at every effect. See the crate's tests for one in full.
#[must_use = "a story is told by `run`"]
pub struct CrashStory<W = ()> {
    name: String,
    world: Box<dyn Fn() -> W + Send + Sync>,
    definitions: Vec<CustomResourceDefinition>,
    controller: Option<Controller<W>>,
    story: Option<Story<W>>,
    expects: BTreeSet<Kind>,
    invariants: Arc<Vec<(String, Check<W>)>>,
    converges: Option<Check<W>>,
    within: Duration,
    quiet_for: Duration,
    same_end: bool,
    same_order: bool,
    account: Option<&'static str>,
}

impl CrashStory<()> {
    /// A story with nothing beside the cluster.
    pub fn new(name: &str) -> Self {
        Self::with(name, || ())
    }
}

impl<W: Clone + Send + Sync + 'static> CrashStory<W> {
    /// A story with something beside the cluster — disks, stores — made anew for each telling.
    pub fn with(name: &str, world: impl Fn() -> W + Send + Sync + 'static) -> Self {
        Self {
            name: name.to_owned(),
            world: Box::new(world),
            definitions: Vec::new(),
            controller: None,
            story: None,
            expects: BTreeSet::new(),
            invariants: Arc::default(),
            converges: None,
            within: Duration::from_secs(600),
            quiet_for: Duration::from_secs(600),
            same_end: true,
            same_order: true,
            account: None,
        }
    }

    /// Definitions that are installed before the story begins.
    pub fn install(mut self, definitions: Vec<CustomResourceDefinition>) -> Self {
        self.definitions = definitions;
        self
    }

    /// What runs in the process that dies: made anew each time it is started.
    pub fn controller<F>(mut self, make: impl Fn(Process<W>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.controller = Some(Box::new(move |process| Box::pin(make(process))));
        self
    }

    /// What the user does meanwhile. It never dies, and may wait for things with [`Cluster::eventually`].
    pub fn story<F>(mut self, tell: impl Fn(Cluster, W) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.story = Some(Box::new(move |cluster, world| Box::pin(tell(cluster, world))));
        self
    }

    /// The story must have effects of this kind; one that shows none has lost its point.
    pub fn expects(mut self, kind: Kind) -> Self {
        self.expects.insert(kind);
        self
    }

    /// What must hold after every single write, whoever made it.
    pub fn invariant(
        mut self,
        name: &str,
        check: impl Fn(&Scene<'_, W>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        let invariants = Arc::get_mut(&mut self.invariants).expect("invariant: not shared before the run");
        invariants.push((name.to_owned(), Box::new(check)));
        self
    }

    /// How the story must end. Once it has, nothing more may be written.
    pub fn converges(
        mut self,
        check: impl Fn(&Scene<'_, W>) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.converges = Some(Box::new(check));
        self
    }

    /// How long, in virtual time, the end may take after the story is told; ten minutes unless said.
    pub fn within(mut self, time: Duration) -> Self {
        self.within = time;
        self
    }

    /// How long, in virtual time, nothing may be written after the end; ten minutes unless said.
    pub fn quiet_for(mut self, time: Duration) -> Self {
        self.quiet_for = time;
        self
    }

    /// A crash may leave other objects than a run without one; only the checks given count.
    pub fn ends_may_differ(mut self) -> Self {
        self.same_end = false;
        self
    }

    /// The process acts as the account of `deploy/NAME.yaml` and has no other rights.
    pub fn account(mut self, name: &'static str) -> Self {
        self.account = Some(name);
        self
    }

    /// The effects may come in another order each time, because real threads are at work; the process still dies at each number, whatever
    /// effect that is then.
    pub fn order_may_differ(mut self) -> Self {
        self.same_order = false;
        self
    }

    /// Tells the story without and with crashes, and gives the effects it had.
    ///
    /// # Panics
    /// When a check fails, saying where the process had died; or when an expected kind of effect does not occur.
    #[expect(clippy::print_stdout, reason = "the crash points are what a reader of the test wants to see")]
    pub fn run(self) -> Vec<Point> {
        let (points, end) = self.tell_without_a_death();
        let mut kinds: BTreeMap<Kind, usize> = self.expects.iter().map(|kind| (*kind, 0)).collect();
        for point in &points {
            *kinds.entry(point.kind).or_default() += 1;
        }
        let summary: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        println!("{}: {} crash points ({})", self.name, points.len(), summary.join(", "));
        for (number, point) in points.iter().enumerate() {
            println!("  {number:3} {point}");
        }
        for (kind, count) in &kinds {
            assert!(*count > 0, "{}: the story must have effects of kind {kind} and shows none", self.name);
        }
        for (number, point) in points.iter().enumerate() {
            let before = (!point.at_once || !self.same_order).then_some(Moment::Before);
            for moment in before.into_iter().chain([Moment::After]) {
                let place =
                    format!("{}: dying {moment:?} effect {number} ({point})", self.name).to_lowercase();
                let _on_panic = Place(&place);
                let told = self.tell_with_a_death(number, moment);
                let (seen, crashed_end) = told.unwrap_or_else(|why| panic!("{place}: {why}"));
                if self.same_order {
                    assert_eq!(
                        seen.get(number),
                        Some(point),
                        "{place}: a repeated run went another way before"
                    );
                }
                if self.same_end {
                    let differences = differences(&end, &crashed_end);
                    assert!(differences.is_empty(), "{place}: it ended otherwise: {differences:#?}");
                }
            }
        }
        points
    }

    fn tell_without_a_death(&self) -> Telling {
        let tellings = if self.same_order { 1 } else { WITHOUT_DEATH };
        let told =
            (0..tellings).map(|_| self.tell(None).unwrap_or_else(|why| panic!("{}: {why}", self.name)));
        told.min_by_key(|(points, _)| points.len()).expect("invariant: told once at least")
    }

    /// One telling in which the process dies. Threads that meet earlier this time may need a write less, so that the last effects do not come; then
    /// the story is told again.
    fn tell_with_a_death(&self, number: usize, moment: Moment) -> Told {
        let tellings = if self.same_order { 1 } else { TELLINGS };
        let mut told = Err(DID_NOT_COME.to_owned());
        for _ in 0..tellings {
            told = self.tell(Some((number, moment)));
            if !told.as_ref().is_err_and(|why| why == DID_NOT_COME) {
                break;
            }
        }
        told
    }

    /// One telling: the effects of the first life, and the end. It has a runtime of its own, whose clock jumps, so that nothing of it lives on
    /// beside the next one; and a stack with room for the deep calls of unoptimised code.
    fn tell(&self, dies_at: Option<(usize, Moment)>) -> Told {
        let tell = || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            let runtime = runtime.expect("a runtime can be set up");
            let told = runtime.block_on(Box::pin(self.tell_once(dies_at)));
            runtime.shutdown_background();
            told
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(16 << 20).spawn_scoped(scope, tell);
            let told = thread.expect("a thread can be started").join();
            told.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    async fn tell_once(&self, dies_at: Option<(usize, Moment)>) -> Told {
        let cluster = Cluster::embedded();
        cluster.install(&self.definitions).await;
        if let Some(name) = self.account {
            cluster.give_rights(name).await;
        }
        let world = (self.world)();
        let follower = Arc::new(Mutex::new(Follower::new(cluster.server())));
        let broken: Arc<Mutex<Option<String>>> = Arc::default();
        let look: Arc<dyn Fn() + Send + Sync> = {
            let (follower, broken, world) = (follower.clone(), broken.clone(), world.clone());
            let invariants = self.invariants.clone();
            Arc::new(move || {
                follower.lock().catch_up(&world, |scene, event| {
                    for (name, check) in invariants.iter() {
                        if let Err(why) = check(scene) {
                            let key = &event.entry.key;
                            let write = format!("{} {}/{}", key.collection, key.namespace, key.name);
                            let told =
                                format!("invariant \"{name}\" broke with {:?} {write}: {why}", event.kind);
                            broken.lock().get_or_insert(told);
                        }
                    }
                });
            })
        };
        let lives = Lives { cluster: &cluster, world: &world, look: &look, all: Mutex::default() };
        let living = self.live(&lives, dies_at);
        let telling = self.tell_and_check(&cluster, &world, &follower, &look, &lives);
        let told = tokio::select! {
            biased;
            error = living => Err(error),
            told = telling => told,
        };
        if let Some(why) = broken.lock().take() {
            return Err(why);
        }
        told?;
        let first = lives.all.lock().first().map(CrashPoints::seen).unwrap_or_default();
        if dies_at.is_some() && !lives.all.lock().first().is_some_and(CrashPoints::is_dead) {
            return Err(DID_NOT_COME.to_owned());
        }
        let end = follower.lock().outline();
        Ok((first, end))
    }

    /// Runs the process, and starts it again when it has died. Returns only what is wrong with it.
    async fn live(&self, lives: &Lives<'_, W>, mut dies_at: Option<(usize, Moment)>) -> String {
        let Some(controller) = &self.controller else { return "the story has no controller".to_owned() };
        let user = self.account.map_or_else(User::admin, account::user);
        loop {
            let points = CrashPoints::new(dies_at.take(), lives.look.clone());
            lives.all.lock().push(points.clone());
            let faults = Counted { points: points.clone(), after_write: lives.look.clone() };
            let process = Process {
                client: lives.cluster.client_with_as(Arc::new(faults), user.clone()),
                clock: lives.cluster.clock(),
                points: points.clone(),
                world: lives.world.clone(),
            };
            let mut task = Task::spawn(controller(process));
            tokio::select! {
                biased;
                () = points.death() => {}
                ended = task.join() => return match ended {
                    Ok(()) => "the controller ended by itself".to_owned(),
                    Err(panic) => format!("the controller panicked: {panic}"),
                },
            }
            if let Err(panic) = task.kill().await {
                return format!("the controller panicked: {panic}");
            }
            // A process takes a moment to be started again; the world goes on.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn tell_and_check(
        &self,
        cluster: &Cluster,
        world: &W,
        follower: &Mutex<Follower>,
        look: &Arc<dyn Fn() + Send + Sync>,
        lives: &Lives<'_, W>,
    ) -> Result<(), String> {
        let watched = Counted { points: CrashPoints::counting(), after_write: look.clone() };
        let user = cluster.through(cluster.client_with(Arc::new(watched)));
        let Some(story) = &self.story else { return Err("nothing is told".to_owned()) };
        story(user, world.clone()).await;
        let ended = || {
            look();
            self.converges.as_ref().map_or(Ok(()), |check| check(&follower.lock().scene(world)))
        };
        let deadline = tokio::time::Instant::now() + self.within;
        while let Err(why) = ended() {
            if tokio::time::Instant::now() >= deadline {
                return Err(format!("it did not end within {} s: {why}", self.within.as_secs()));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // What was on its way when the end was reached may still arrive.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let before = lives.effects();
        tokio::time::sleep(self.quiet_for).await;
        let after = lives.effects();
        if after.len() > before.len() {
            let more: Vec<String> = after[before.len()..].iter().map(ToString::to_string).collect();
            return Err(format!("it had ended, and yet did {more:?}"));
        }
        ended().map_err(|why| format!("it had ended, and then was otherwise: {why}"))
    }
}

/// All lives of the process in one telling.
struct Lives<'a, W> {
    cluster: &'a Cluster,
    world: &'a W,
    look: &'a Arc<dyn Fn() + Send + Sync>,
    all: Mutex<Vec<CrashPoints>>,
}

impl<W> Lives<'_, W> {
    fn effects(&self) -> Vec<Point> {
        self.all.lock().iter().flat_map(CrashPoints::seen).collect()
    }
}

/// Says where the story was when something panicked in it.
struct Place<'a>(&'a str);

impl Drop for Place<'_> {
    #[expect(clippy::print_stdout, reason = "a panic inside a story does not know where the process died")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.0);
        }
    }
}

fn differences(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> Vec<String> {
    let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ = keys.into_iter().filter(|key| one.get(*key) != other.get(*key));
    let show = |value: Option<&Value>| value.map_or("absent".to_owned(), ToString::to_string);
    differ.map(|key| format!("{key}: {} -> {}", show(one.get(key)), show(other.get(key)))).collect()
}
