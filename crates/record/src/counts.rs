//! Counts: regions, their threads, and a table of numbers for each pass.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A thread in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, PartialOrd, Ord, Hash)]
pub struct Thread {
    /// Its process: the rank of a parallel program, otherwise 0.
    pub process: u32,
    /// Its number, unique within its process.
    pub thread: u32,
    /// The computer it ran on; 0 if there is only one.
    pub node: u32,
    /// The CPU it ran on, in the machine's numbering.
    pub cpu: u32,
}

/// Names of counts, ascending and unique, shared by many [`Counts`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Hash)]
pub struct Names(Vec<String>);

impl Names {
    /// Returns the index of `name`.
    #[must_use]
    pub fn index(&self, name: &str) -> Option<usize> {
        self.0.binary_search_by(|n| n.as_str().cmp(name)).ok()
    }

    /// Returns all names, ascending.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns the number of names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<String> for Names {
    fn from_iter<I: IntoIterator<Item = String>>(names: I) -> Names {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        Names(names)
    }
}

/// The counts of a region's threads in one pass: one row per thread, one column per name.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    names: Arc<Names>,
    values: Vec<u64>,
}

impl Counts {
    /// Marks a missing count. No hardware counter has all 64 bits set.
    pub const ABSENT: u64 = u64::MAX;

    /// Creates a table for `threads` threads without counts.
    #[must_use]
    pub fn new(names: Arc<Names>, threads: usize) -> Counts {
        let values = vec![Counts::ABSENT; names.len() * threads];
        Counts { names, values }
    }

    /// Returns a table from all its numbers, thread by thread, with [`Counts::ABSENT`] for missing counts; `None` if
    /// their number does not match.
    #[must_use]
    pub fn from_values(names: Arc<Names>, threads: usize, values: Vec<u64>) -> Option<Counts> {
        (values.len() == names.len() * threads).then_some(Counts { names, values })
    }

    /// Returns all numbers, thread by thread.
    pub(crate) fn values(&self) -> &[u64] {
        &self.values
    }

    /// Returns the names of the columns.
    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        &self.names
    }

    /// Returns the count `name` of a thread, by its index in the region; `None` if it was not counted.
    #[must_use]
    pub fn get(&self, thread: usize, name: &str) -> Option<u64> {
        self.at(thread, self.names.index(name)?)
    }

    /// Returns a thread's count in a column.
    #[must_use]
    pub fn at(&self, thread: usize, column: usize) -> Option<u64> {
        let value = self.values.get(thread * self.names.len()..)?.get(column)?;
        (column < self.names.len() && *value != Counts::ABSENT).then_some(*value)
    }

    /// Sets a thread's count in a column.
    ///
    /// # Panics
    /// If the table has no such thread or column.
    pub fn set(&mut self, thread: usize, column: usize, count: u64) {
        assert!(column < self.names.len(), "column {column} of {}", self.names.len());
        self.values[thread * self.names.len() + column] = count;
    }

    /// Returns all counts of a thread.
    pub fn row(&self, thread: usize) -> impl Iterator<Item = (&str, u64)> {
        self.names.iter().enumerate().filter_map(move |(column, name)| Some((name, self.at(thread, column)?)))
    }
}

/// A named part of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Region {
    /// Name; [`crate::ALL`] is the whole run.
    pub name: String,
    /// Number of times it was entered.
    pub calls: u64,
    /// Its threads.
    pub threads: Vec<Thread>,
    /// Their counts in each pass of the run.
    pub passes: Vec<Counts>,
}

impl Region {
    /// Returns a region of a run with a single pass: its threads, each with its counts by name.
    #[must_use]
    pub fn of_one_pass(name: &str, calls: u64, rows: Vec<(Thread, BTreeMap<String, u64>)>) -> Region {
        let names: Arc<Names> = Arc::new(rows.iter().flat_map(|(_, counts)| counts.keys().cloned()).collect());
        let mut counts = Counts::new(Arc::clone(&names), rows.len());
        for (thread, (_, row)) in rows.iter().enumerate() {
            for (name, &count) in row {
                counts.set(thread, names.index(name).expect("collected above"), count);
            }
        }
        let threads = rows.into_iter().map(|(thread, _)| thread).collect();
        Region { name: name.to_owned(), calls, threads, passes: vec![counts] }
    }

    /// Returns a thread's count `name`, from the first pass that has it.
    #[must_use]
    pub fn count(&self, thread: usize, name: &str) -> Option<u64> {
        self.passes.iter().find_map(|counts| counts.get(thread, name))
    }

    /// Returns all counts of its threads, each from the first pass that has it.
    #[must_use]
    pub fn tallies(&self) -> Tallies<'_> {
        let mut columns: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        for (pass, counts) in self.passes.iter().enumerate() {
            for (column, name) in counts.names().iter().enumerate() {
                columns.entry(name).or_default().push((pass, column));
            }
        }
        Tallies { passes: &self.passes, columns: columns.into_iter().collect() }
    }

    /// Returns all counts of a thread, each from the first pass that has it.
    #[must_use]
    pub fn counts(&self, thread: usize) -> BTreeMap<&str, u64> {
        self.tallies().row(thread).collect()
    }
}

/// The counts of a region by name, regardless of pass.
#[derive(Clone, Debug)]
pub struct Tallies<'a> {
    passes: &'a [Counts],
    /// Each name, ascending, with the passes and columns that have it.
    columns: Vec<(&'a str, Vec<(usize, usize)>)>,
}

impl<'a> Tallies<'a> {
    /// Returns all counts of a thread, by ascending names.
    pub fn row(&self, thread: usize) -> impl Iterator<Item = (&'a str, u64)> {
        self.columns.iter().filter_map(move |(name, places)| Some((*name, self.first(thread, places)?)))
    }

    /// Returns all names, ascending, with the counts of those threads below index `threads` that have one.
    pub fn columns(&self, threads: usize) -> impl Iterator<Item = (&'a str, impl Iterator<Item = (usize, u64)>)> {
        self.columns.iter().map(move |(name, places)| {
            let counts = (0..threads).filter_map(|thread| Some((thread, self.first(thread, places)?)));
            (*name, counts)
        })
    }

    /// The count from the first pass that has it for a thread.
    fn first(&self, thread: usize, places: &[(usize, usize)]) -> Option<u64> {
        places.iter().find_map(|&(pass, column)| self.passes[pass].at(thread, column))
    }
}
