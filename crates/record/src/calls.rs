//! Calls of functions: which called which, and the cycles of each in the context of its callers.

use crate::data::SourceLine;

/// Calls of a run. Empty if they were not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Calls {
    /// Functions in the contexts of their callers. A function that is called while it is active continues its outer context, so that
    /// each path has a function once.
    pub contexts: Vec<CallContext>,
    /// Calls and cycles of each context by thread, without those that have neither.
    pub counts: Vec<CallCount>,
}

/// A function in the context of its callers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct CallContext {
    /// The context that called it, as an index into [`Calls::contexts`]; always a smaller one than its own.
    pub caller: Option<u32>,
    /// Its name; empty for code that is in no function.
    pub function: String,
    /// The file of its code, as an index into [`crate::Run::files`]; `None` for code that is from no file.
    pub file: Option<u32>,
    /// The compiler has inlined it: it has no calls of its own, and its cycles are a share of those of the function around it, as in the
    /// whole run.
    pub is_inlined: bool,
    /// The line of the call, if debug information has it.
    pub site: Option<SourceLine>,
    /// The innermost loop of the caller that the call is in, as an index into [`crate::Profile::loops`].
    pub in_loop: Option<u32>,
}

/// What a thread has counted in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CallCount {
    /// The context, as an index into [`Calls::contexts`].
    pub context: u32,
    /// The process, as in [`crate::Thread::process`].
    pub process: u32,
    /// The thread, by its number in the process.
    pub thread: u32,
    /// Times that it was called.
    pub calls: u64,
    /// Cycles in the function itself.
    pub cycles: u64,
}
