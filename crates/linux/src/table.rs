//! Tables of the objects that a guest has several of. Each is identified by a number until it is removed.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identifies an entry of a [`Table`].
pub(crate) struct Id<T> {
    index: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Id<T> {
    fn new(index: usize) -> Id<T> {
        Id { index: u32::try_from(index).expect("fewer than 2^32 entries"), of: PhantomData }
    }

    fn index(self) -> usize {
        self.index as usize
    }
}

impl<T> Clone for Id<T> {
    fn clone(&self) -> Id<T> {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> PartialEq for Id<T> {
    fn eq(&self, other: &Id<T>) -> bool {
        self.index == other.index
    }
}

impl<T> Eq for Id<T> {}

impl<T> std::fmt::Debug for Id<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.index.fmt(f)
    }
}

impl<T> Serialize for Id<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.index.serialize(serializer)
    }
}

impl<'de, T> Deserialize<'de> for Id<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id<T>, D::Error> {
        Ok(Id { index: u32::deserialize(deserializer)?, of: PhantomData })
    }
}

/// Entries by number. A new one gets the lowest free number.
#[derive(Serialize, Deserialize)]
pub(crate) struct Table<T> {
    slots: Vec<Option<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { slots: Vec::new() }
    }
}

impl<T> Table<T> {
    pub(crate) fn insert(&mut self, entry: T) -> Id<T> {
        let free = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if free == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[free] = Some(entry);
        Id::new(free)
    }

    /// Removes an entry, which must exist.
    pub(crate) fn remove(&mut self, id: Id<T>) -> T {
        self.slots[id.index()].take().expect("entries are removed once")
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.iter().flatten().count()
    }

    pub(crate) fn get(&self, id: Id<T>) -> Option<&T> {
        self.slots.get(id.index())?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: Id<T>) -> Option<&mut T> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// Returns a table with the same numbers, with `f` applied to the entries.
    ///
    /// # Errors
    /// The first one of `f`.
    pub(crate) fn try_map<U, E>(&self, mut f: impl FnMut(&T) -> Result<U, E>) -> Result<Table<U>, E> {
        let slots = self.slots.iter().map(|slot| slot.as_ref().map(&mut f).transpose());
        Ok(Table { slots: slots.collect::<Result<_, E>>()? })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Id<T>, &T)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| Some((Id::new(index), slot.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Id<T>, &mut T)> {
        self.slots.iter_mut().enumerate().filter_map(|(index, slot)| Some((Id::new(index), slot.as_mut()?)))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().flatten()
    }

    /// Borrows an entry and all others separately.
    pub(crate) fn split(&mut self, id: Id<T>) -> (&mut T, Others<'_, T>) {
        let (before, rest) = self.slots.split_at_mut(id.index());
        let (entry, after) = rest.split_first_mut().expect("the entry exists");
        (entry.as_mut().expect("the entry exists"), Others { before, after })
    }
}

impl<T> Index<Id<T>> for Table<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, id: Id<T>) -> &T {
        self.slots[id.index()].as_ref().expect("the entry exists")
    }
}

impl<T> IndexMut<Id<T>> for Table<T> {
    #[inline(always)]
    fn index_mut(&mut self, id: Id<T>) -> &mut T {
        self.slots[id.index()].as_mut().expect("the entry exists")
    }
}

/// The entries of a [`Table`] except one, which is borrowed separately.
pub(crate) struct Others<'a, T> {
    before: &'a mut [Option<T>],
    after: &'a mut [Option<T>],
}

impl<T> Others<'_, T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.before.iter().chain(self.after.iter()).flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.before.iter_mut().chain(self.after.iter_mut()).flatten()
    }

    /// Removes the first entry for which `wanted` holds.
    pub(crate) fn take(&mut self, wanted: impl Fn(&T) -> bool) -> Option<T> {
        let mut slots = self.before.iter_mut().chain(self.after.iter_mut());
        slots.find_map(|slot| slot.take_if(|entry| wanted(entry)))
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn an_entry_keeps_its_number_until_it_is_removed_and_the_number_is_reused() {
        let mut table = Table::default();
        let (a, b) = (table.insert('a'), table.insert('b'));
        assert_eq!(table.remove(a), 'a');
        assert_eq!((table.get(a), table[b]), (None, 'b'));
        assert_eq!(table.insert('c'), a);
        assert_eq!(table.values().copied().collect::<String>(), "cb");
    }

    #[test]
    fn an_entry_and_all_others_can_be_borrowed_mutably_at_the_same_time() {
        let mut table = Table::default();
        let ids = [1, 2, 3].map(|n| table.insert(n));
        let (entry, mut others) = table.split(ids[1]);
        for other in others.iter_mut() {
            *other += *entry;
        }
        *entry = 0;
        assert_eq!(others.take(|&other| other == 3), Some(3));
        assert_eq!(table.values().copied().collect::<Vec<_>>(), [0, 5]);
    }
}
