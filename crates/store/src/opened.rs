//! Stores that stay open.

use crate::Objects;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Stores that are open, by name, with what they were opened by: connections and certificates are worth more than one piece of work.
#[derive(Debug)]
pub struct Opened<B>(Mutex<BTreeMap<String, (B, Objects)>>);

impl<B> Default for Opened<B> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<B: Clone + PartialEq> Opened<B> {
    /// The store of a name. One that is not open is opened, and so is one that has another address or other keys by now.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn get<E>(
        &self,
        name: &str,
        by: &B,
        open: impl FnOnce(&B) -> Result<Objects, E>,
    ) -> Result<Objects, E> {
        let mut opened = self.0.lock();
        if let Some((known, objects)) = opened.get(name)
            && known == by
        {
            return Ok(objects.clone());
        }
        let objects = open(by)?;
        opened.insert(name.to_owned(), (by.clone(), objects.clone()));
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;
    use std::cell::Cell;

    #[test]
    fn a_store_is_opened_anew_only_if_it_is_another() {
        let (opened, times, place) = (Opened::default(), Cell::new(0), tempfile::tempdir().unwrap());
        let get = |name: &str, by: u32| {
            let open = |_: &u32| {
                times.set(times.get() + 1);
                Objects::open(&Store::Local(place.path().to_owned()))
            };
            opened.get(name, &by, open).map(drop).unwrap();
            times.get()
        };
        assert_eq!([get("a", 1), get("a", 1), get("b", 1), get("a", 2), get("a", 2)], [1, 1, 2, 3, 3]);
        let failed = opened.get("a", &3, |_| Err("no"));
        assert_eq!(failed.err(), Some("no"));
        assert_eq!(get("a", 2), 3, "one that cannot be opened does not replace the one before");
    }
}
