//! The layout of a process's address space. The same in every run: no randomisation.
//!
//! ```text
//! 0x0000_0040_0000   program (position-independent ones: two thirds of the way up), then the brk heap
//! …                  mappings, from MMAP_TOP downwards
//! MMAP_TOP           the page with the signal return code, then a guard gap
//! STACK_TOP          the stack, downwards
//! ```

use fxscope_guestmem::{PAGE, USER_END};

/// Address after the stack.
pub const STACK_TOP: u64 = USER_END;

/// Space reserved for the stack and a gap below it; larger stacks are refused.
pub const STACK_ROOM: u64 = 1 << 36;

/// End of mappings. Linux keeps at least 128 MiB for the stack; this leaves room for `ulimit -s` of up to 64 GiB.
pub const MMAP_TOP: u64 = SIGNAL_RETURN;

/// The page with the code that handlers return to.
pub const SIGNAL_RETURN: u64 = STACK_TOP - STACK_ROOM - PAGE;

/// Default size of the stack in bytes, as Linux's default `ulimit -s`.
pub const DEFAULT_STACK: u64 = 8 << 20;
