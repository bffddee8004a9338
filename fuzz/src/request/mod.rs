//! Whole requests to a server in this process, and what must hold after each.

mod ask;
mod world;

use crate::Input;
use ask::Ask;
use world::World;

/// What lies between the requests of a text.
const BETWEEN: &str = "\n###\n";
/// An input is worth so many requests at most.
const MOST: usize = 12;

/// A few requests to a new server: no panic, a sound answer to each, and a store that a refused request left alone.
///
/// # Panics
/// When a promise is broken.
pub fn request(data: &[u8]) {
    crate::tolerate_fenced_panics();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("invariant: a runtime without I/O can be made");
    runtime.block_on(async {
        let mut world = World::new().await;
        match Input::read(data, BETWEEN) {
            Input::Text(parts) => {
                for part in parts.into_iter().take(MOST) {
                    if let Some(ask) = Ask::read(part) {
                        world.serve(&ask).await;
                    }
                }
            }
            Input::Choices(mut source) => {
                for _ in 0..MOST {
                    let ask = Ask::choose(&mut source, &world);
                    world.serve(&ask).await;
                    if source.is_empty() {
                        break;
                    }
                }
            }
        }
        world.end().await;
    });
}
