//! What a run knows of its code and data beyond counts by region: loops, and events by instruction.

use crate::calls::Calls;
use crate::data::Data;

/// What a run knows of its code and data, beside the costs of each instruction ([`crate::Run::hot_spots`]).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Profile {
    /// Events counted for each instruction, by the names of the machine's events; empty if not recorded.
    pub events: Vec<String>,
    /// Natural loops of the executed functions, outer ones before inner ones, by ascending file and place of their heads.
    pub loops: Vec<Loop>,
    /// Call stacks of threads.
    pub stacks: Stacks,
    /// Calls of functions.
    pub calls: Calls,
    /// Data objects; empty if they were not requested.
    pub data: Data,
}

/// Call stacks of the threads of a run, sampled at equal distances of simulated time.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Stacks {
    /// The distance, ns; 0 if none were requested.
    pub interval_ns: u64,
    /// Functions with those that called them.
    pub frames: Vec<StackFrame>,
    /// The samples in order of time, of all threads that ran.
    pub samples: Vec<StackSample>,
}

/// A function in a call stack.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StackFrame {
    /// The function that called it, as an index into [`Stacks::frames`]; always a smaller one than its own.
    pub caller: Option<u32>,
    /// Its name or, if that is not known, an address in it.
    pub function: String,
    /// The file that its code is from, as programs see the path.
    pub file: Option<String>,
}

/// The stack of a thread at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct StackSample {
    /// The process, as in [`crate::Thread::process`].
    pub process: u32,
    /// The thread, by its number in the process.
    pub thread: u32,
    /// The time, ns since the start of the run.
    pub at_ns: u64,
    /// The innermost function, as an index into [`Stacks::frames`].
    pub frame: u32,
}

/// A natural loop of a function: the instructions that can reach a branch back to its head without leaving through the head. Counts
/// include the loops inside, but not the functions that it calls.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Loop {
    /// The innermost loop around it in the same function, as an index into [`Profile::loops`]; always a smaller one than its own.
    pub parent: Option<u32>,
    /// Its function.
    pub function: String,
    /// The file of its code, as an index into [`crate::Run::files`].
    pub file: u32,
    /// Offset of its head in the file: the instruction that begins each iteration. Unique in a run together with the file.
    pub place: u64,
    /// Address of its head in the first process that executed it.
    pub address: u64,
    /// Offset of its head from the start of the function, bytes.
    pub offset: u64,
    /// Number of its instructions that were executed at least once.
    pub size: u64,
    /// Its source lines, if debug information has them.
    pub source: Option<SourceLines>,
    /// Executions of its head.
    pub iterations: u64,
    /// Times it was entered from outside; `None`: the counts of instructions do not determine it.
    pub entries: Option<u64>,
    /// Instructions executed.
    pub instructions: u64,
    /// Cycles of its instructions.
    pub cycles: u64,
    /// Cycles of its instructions that are in no inner loop.
    pub own_cycles: u64,
    /// Cycles without commit, for each cause in [`crate::Run::stalls`].
    pub stalls: Vec<u64>,
    /// Cycles of each of [`crate::Run::pipes`].
    pub pipes: Vec<u64>,
    /// Counts of each of [`Profile::events`].
    pub events: Vec<u64>,
    /// Its floating-point work.
    pub arithmetic: Arithmetic,
    /// Its memory accesses.
    pub accesses: Accesses,
}

/// Floating-point work of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Arithmetic {
    /// Floating-point operations, a multiply-add as two, on active elements.
    pub operations: u64,
    /// The same if all elements were active.
    pub of_all_elements: u64,
    /// Executions of instructions with floating-point operations.
    pub instructions: u64,
    /// Sum over these of the bits that they operate on if all elements are active.
    pub bits: u64,
}

impl Arithmetic {
    /// Returns the mean width of an instruction, bits: the vector length that the code uses; `None` without operations.
    #[must_use]
    pub fn vector_bits(&self) -> Option<f64> {
        (self.instructions > 0).then(|| self.bits as f64 / self.instructions as f64)
    }

    /// Returns the share of elements that are active, 0 to 1; `None` without operations.
    #[must_use]
    pub fn active(&self) -> Option<f64> {
        (self.of_all_elements > 0).then(|| self.operations as f64 / self.of_all_elements as f64)
    }
}

/// Memory accesses of instructions, by what the instructions say: bytes of active elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Accesses {
    /// Bytes loaded.
    pub loaded: u64,
    /// Bytes stored.
    pub stored: u64,
}

/// Consecutive lines of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct SourceLines {
    /// The file, as given to the compiler.
    pub file: String,
    /// First and last line, counted from 1.
    pub first: u32,
    /// See `first`.
    pub last: u32,
}

impl std::fmt::Display for SourceLines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.file.rsplit('/').next().unwrap_or_default();
        match self.first == self.last {
            true => write!(f, "{name}:{}", self.first),
            false => write!(f, "{name}:{}-{}", self.first, self.last),
        }
    }
}

impl Loop {
    /// Returns the mean number of iterations for each time it was entered; `None` if not known.
    #[must_use]
    pub fn trips(&self) -> Option<f64> {
        self.entries.filter(|&entries| entries > 0).map(|entries| self.iterations as f64 / entries as f64)
    }

    /// Returns instructions per cycle; `None` without cycles.
    #[must_use]
    pub fn ipc(&self) -> Option<f64> {
        (self.cycles > 0).then(|| self.instructions as f64 / self.cycles as f64)
    }
}

impl Profile {
    /// Returns how many loops are around loop number `index` in its function.
    #[must_use]
    pub fn depth(&self, index: usize) -> usize {
        let around = |index: &usize| self.loops.get(*index)?.parent.map(|parent| parent as usize);
        std::iter::successors(around(&index), around).count()
    }

    /// Returns the count of an event of a loop; `None` if it was not counted.
    #[must_use]
    pub fn event(&self, of: &Loop, name: &str) -> Option<u64> {
        let place = self.events.iter().position(|event| event == name)?;
        of.events.get(place).copied()
    }
}
