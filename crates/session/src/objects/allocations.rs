//! Heap blocks: what allocation functions return, followed by their names when they are called and when they return.

use std::collections::BTreeMap;

use fxscope_aarch64::Cpu;
use fxscope_linux::Guest;

/// An allocation function, by where its arguments are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    /// Its result is a block of as many bytes as the argument with this number says.
    Sized(u8),
    /// The same, of the product of two arguments.
    Product(u8, u8),
    /// It changes the size of the block in its first argument; the size is in this one, or the product of this and the next.
    Resizes { product: bool },
    /// It stores the block at its first argument; the size is in the third.
    Stores,
    /// It frees the block in its first argument.
    Frees,
}

/// Names of the functions of the C library, and of C++ as they are mangled (Itanium C++ ABI: `nw`, `na`, `dl`, `da`).
fn function(name: &str) -> Option<Function> {
    let name = name.strip_prefix("__libc_").unwrap_or(name);
    Some(match name {
        "malloc" | "__malloc" | "valloc" | "pvalloc" => Function::Sized(0),
        "aligned_alloc" | "memalign" | "__memalign" => Function::Sized(1),
        "calloc" | "__calloc" => Function::Product(0, 1),
        "realloc" | "__realloc" => Function::Resizes { product: false },
        "reallocarray" => Function::Resizes { product: true },
        "posix_memalign" | "__posix_memalign" => Function::Stores,
        "free" | "__free" | "cfree" => Function::Frees,
        _ if name.starts_with("_Znwm") || name.starts_with("_Znam") => Function::Sized(0),
        _ if name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv") => Function::Frees,
        _ => return None,
    })
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Call {
    function: Function,
    /// Where it returns to, and the stack pointer then.
    back: u64,
    stack: u64,
    /// Its first argument.
    argument: u64,
    bytes: u64,
}

/// A block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub start: u64,
    pub bytes: u64,
    /// The address of the call that allocated it.
    pub site: u64,
}

/// What a thread has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Change {
    /// The block that is no more, by its address; 0: none.
    pub freed: u64,
    pub allocated: Option<Block>,
}

/// Follows the calls of the threads of a process.
#[derive(Default)]
pub(crate) struct Allocations {
    /// The version of the symbols that `functions` is from.
    version: Option<u64>,
    functions: BTreeMap<u64, Function>,
    /// By thread. Functions that others call on their behalf are part of these calls.
    calls: BTreeMap<u32, Call>,
}

impl Allocations {
    /// Looks at the running thread of a guest, which has just executed a block of code.
    pub(crate) fn ran(&mut self, guest: &mut Guest) -> Option<Change> {
        if self.version != Some(guest.running_symbols().version()) {
            self.learn(guest);
        }
        let (tid, pc) = (guest.thread().tid, guest.cpu().pc);
        let returned = self.calls.get(&tid).is_some_and(|call| pc == call.back && guest.cpu().x(STACK) >= call.stack);
        if returned {
            let call = self.calls.remove(&tid)?;
            return Some(call.returned(guest));
        }
        let function = *self.functions.get(&pc)?;
        self.called(function, tid, guest)
    }

    #[cold]
    fn learn(&mut self, guest: &Guest) {
        let symbols = guest.running_symbols();
        self.version = Some(symbols.version());
        self.functions = symbols.functions().filter_map(|(name, start)| Some((start, function(name)?))).collect();
    }

    #[cold]
    fn called(&mut self, called: Function, tid: u32, guest: &Guest) -> Option<Change> {
        let cpu = guest.cpu();
        let stack = cpu.x(STACK);
        // An inner call is part of the outer one, unless that was left without returning.
        if self.calls.get(&tid).is_some_and(|call| stack < call.stack) {
            return None;
        }
        let argument = |number: u8| cpu.x(number);
        let bytes = match called {
            Function::Sized(number) => argument(number),
            Function::Product(a, b) => argument(a).saturating_mul(argument(b)),
            Function::Resizes { product: false } => argument(1),
            Function::Resizes { product: true } => argument(1).saturating_mul(argument(2)),
            Function::Stores => argument(2),
            Function::Frees => return Some(Change { freed: argument(0), allocated: None }),
        };
        self.calls.insert(tid, Call { function: called, back: cpu.x(LINK), stack, argument: argument(0), bytes });
        None
    }
}

/// The stack pointer and the link register.
const STACK: u8 = Cpu::SP;
const LINK: u8 = 30;

impl Call {
    /// Returns what a call has done that has just returned.
    fn returned(self, guest: &mut Guest) -> Change {
        let result = guest.cpu().x(0);
        let (start, freed) = match self.function {
            Function::Stores if result == 0 => (guest.read_word(self.argument).unwrap_or(0), 0),
            Function::Stores | Function::Frees => (0, 0),
            Function::Resizes { .. } if result == 0 && self.bytes > 0 => (0, 0),
            Function::Resizes { .. } => (result, self.argument),
            Function::Sized(_) | Function::Product(..) => (result, 0),
        };
        let block = Block { start, bytes: self.bytes.max(1), site: self.back.wrapping_sub(4) };
        Change { freed, allocated: (start != 0).then_some(block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_c_and_cxx_are_known_by_their_names() {
        assert_eq!(function("malloc"), Some(Function::Sized(0)));
        assert_eq!(function("__libc_calloc"), Some(Function::Product(0, 1)));
        assert_eq!(function("_ZnwmSt11align_val_t"), Some(Function::Sized(0)));
        assert_eq!(function("_ZdaPvm"), Some(Function::Frees));
        assert_eq!(function("my_malloc"), None);
    }
}
