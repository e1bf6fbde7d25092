//! Timing classes: the names under which a machine has latencies and pipes of instructions.
//!
//! A class is the text of a row key of a machine's `instructions.csv`, such as
//! `"ADD (shifted register) [amount=0]"`. It names a case that the *architecture* distinguishes; the
//! machine says what it costs. Names are interned process-wide, so that an id is a small dense number.

use std::collections::HashMap;
use std::sync::{LazyLock, RwLock};

/// A dense id for a timing class name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

#[derive(Default)]
struct Interner {
    by_name: HashMap<&'static str, u16>,
    names: Vec<&'static str>,
}

static INTERNER: LazyLock<RwLock<Interner>> = LazyLock::new(RwLock::default);

impl ClassId {
    /// Returns the id of `name`, the same for the same text within one process.
    ///
    /// # Panics
    /// When more than 65,536 names are interned: there are about 1,500 rows.
    #[must_use]
    pub fn of(name: &'static str) -> ClassId {
        if let Some(&id) = INTERNER.read().expect("interner lock").by_name.get(name) {
            return ClassId(id);
        }
        let mut table = INTERNER.write().expect("interner lock");
        if let Some(&id) = table.by_name.get(name) {
            return ClassId(id);
        }
        let id = u16::try_from(table.names.len()).expect("at most 65,536 timing classes");
        table.names.push(name);
        table.by_name.insert(name, id);
        ClassId(id)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(self) -> &'static str {
        INTERNER.read().expect("interner lock").names[usize::from(self.0)]
    }
}
