//! The mover, tried.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod crash;
mod group;
mod link;
mod mortal;
mod on_lvm;
mod processes;
mod published;
mod receiver_rules;
mod roles;
mod rules;
mod site;
mod stories;
mod trust;

/// Tells a story on one thread, with room for the deep calls of unoptimised code; on a clock that jumps where it says so.
fn tell(paused: bool, story: impl Future<Output = ()> + Send + 'static) {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(paused).build();
        runtime.unwrap().block_on(Box::pin(story));
    };
    let told = std::thread::Builder::new().stack_size(16 << 20).spawn(run).unwrap().join();
    told.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
