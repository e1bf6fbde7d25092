//! Calls of MPI: which functions each thread calls, when, and how much they transfer.
//!
//! Functions are recognised by the names of their symbols, in the library or in the program. Of nested calls the outermost one
//! counts: a library may implement one function by another. A call lasts from the first instruction of the function to that behind
//! the call.

mod communicators;
mod functional;
mod functions;

use std::collections::BTreeMap;

use fxscope_aarch64::Cpu;
use fxscope_linux::{Frame, Guest};
use serde::{Deserialize, Serialize};

use communicators::{Communicators, MakingCall};

pub(crate) use functional::Follower;
pub(crate) use functions::Entry;
pub use functions::Kind;

/// Calls that a run keeps one by one; of further ones there are sums.
pub const MOST_CALLS: usize = 1 << 20;

/// A call of a function of MPI that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The thread that called it: its number in the record.
    pub thread: u32,
    /// The function; see [`Call::name`].
    function: u16,
    /// Bytes that the caller sends or contributes, or has room for when it receives; `None`: nothing, or the arguments do not say.
    pub bytes: Option<u64>,
    /// The rank in `MPI_COMM_WORLD` that it sends to or receives from; `None`: none, any, or it is not known.
    pub partner: Option<u32>,
    /// When it began, ns of simulated time; in functional mode, of the instructions of its process.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

impl Call {
    /// Returns the name of the function in C.
    #[must_use]
    pub fn name(&self) -> &'static str {
        functions::at(self.function).name
    }

    /// Returns what it is for.
    #[must_use]
    pub fn kind(&self) -> Kind {
        functions::at(self.function).kind
    }
}

/// The sums over a thread's calls of one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// The thread's number in the record.
    pub thread: u32,
    /// The name of the function in C.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// Number of calls.
    pub calls: u64,
    /// Their time, ns.
    pub ns: u64,
    /// Their bytes, as far as the arguments say.
    pub bytes: u64,
}

/// The calls of MPI of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Sums, by ascending thread and function.
    pub sums: Vec<Sum>,
    /// The first [`MOST_CALLS`] calls, in the order in which they ended.
    pub calls: Vec<Call>,
    /// The number of calls that are in the sums only.
    pub dropped: u64,
}

/// The call of MPI in which a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The name of the function in C.
    pub name: &'static str,
    /// What it is for.
    pub kind: Kind,
    /// Bytes as in a [`Call`].
    pub bytes: Option<u64>,
    /// The rank in `MPI_COMM_WORLD` that it sends to or receives from, if that is known.
    pub partner: Option<u32>,
    /// The tag of its message.
    pub tag: Option<u32>,
    /// Since when, ns of simulated time.
    pub begin_ns: u64,
}

/// A call that has not ended.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Open {
    call: Call,
    /// The tag of its message.
    tag: Option<u32>,
    /// The communicator that it makes.
    making: Option<MakingCall>,
    /// Where the function returns to, and the stack pointer then.
    return_address: u64,
    stack_pointer: u64,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Tally {
    calls: u64,
    ns: u64,
    bytes: u64,
}

/// Follows the calls of all threads.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Recorder {
    /// The call that each thread is in, by its number.
    open: Vec<Option<Open>>,
    tallies: BTreeMap<(u32, u16), Tally>,
    calls: Vec<Call>,
    dropped: u64,
    communicators: Communicators,
    /// Calls do not count: they are outside of the part of the run that is timed.
    is_outside: bool,
}

impl Recorder {
    /// Returns the state before a run of which a part is timed that is still to begin.
    pub(crate) fn outside() -> Recorder {
        Recorder { is_outside: true, ..Recorder::default() }
    }

    /// The part that is timed begins at `now_ns`. Calls that have not ended count from then on.
    pub(crate) fn enter_part(&mut self, now_ns: u64) {
        self.is_outside = false;
        self.open.iter_mut().flatten().for_each(|open| open.call.begin_ns = now_ns);
    }

    /// It ends at `now_ns`. Calls that have not ended count up to then.
    pub(crate) fn leave_part(&mut self, now_ns: u64) {
        let until_now = |open: &Open| Call { end_ns: now_ns, ..open.call };
        let open: Vec<Call> = self.open.iter().flatten().map(until_now).collect();
        open.into_iter().for_each(|call| self.ended(call));
        self.is_outside = true;
    }

    /// Returns whether a thread that arrives at `pc` returns from a call.
    pub(crate) fn returns(&self, thread: u32, pc: u64) -> bool {
        self.open.get(thread as usize).is_some_and(|open| open.is_some_and(|open| open.return_address == pc))
    }

    /// Returns the function in which a thread is, and the address to which it returns.
    fn call_of(&self, thread: u32) -> Option<(Kind, u64)> {
        let open = self.open.get(thread as usize)?.as_ref()?;
        Some((open.call.kind(), open.return_address))
    }

    /// Iterates over the calls that have not ended: the number of the thread, and the address to which it returns.
    fn returns_of_all(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        (0..).zip(&self.open).filter_map(|(thread, open)| Some((thread, open.as_ref()?.return_address)))
    }

    /// Thread number `thread` of the record, the running one, has arrived at its program counter at `now_ns`: `entry` is the
    /// function of MPI that begins there, if one does.
    pub(crate) fn arrives(&mut self, thread: u32, entry: Option<Entry>, guest: &mut Guest, now_ns: u64) {
        let (pc, stack_pointer) = (guest.cpu().pc, guest.cpu().x(Cpu::SP));
        let place = thread as usize;
        if let Some(open) = self.open.get(place).copied().flatten() {
            // A function that did not return to its caller ended when the caller went on below it (longjmp).
            if (pc == open.return_address && stack_pointer == open.stack_pointer) || stack_pointer > open.stack_pointer
            {
                self.open[place] = None;
                if let Some(making) = open.making {
                    self.communicators.made(making, guest);
                }
                self.ended(Call { end_ns: now_ns, ..open.call });
            }
        }
        let Some(Entry { function, by_reference }) = entry else { return };
        let (bytes, partner, tag) = if by_reference { (None, None, None) } else { self.amount(function, guest) };
        let making = if by_reference { None } else { self.making(function, guest) };
        if self.open.len() <= place {
            self.open.resize(place + 1, None);
        }
        match &mut self.open[place] {
            // The wrapper for Fortran calls the function of C.
            Some(open) => {
                let Open { call, tag: known, .. } = open;
                if call.function == function && call.bytes.is_none() {
                    (call.bytes, call.partner, *known) = (bytes, partner, tag);
                }
                open.making = open.making.or(making);
            }
            none => {
                let call = Call { thread, function, bytes, partner, begin_ns: now_ns, end_ns: now_ns };
                *none = Some(Open { call, tag, making, return_address: guest.cpu().x(30), stack_pointer });
            }
        }
    }

    fn ended(&mut self, call: Call) {
        if self.is_outside {
            return;
        }
        let tally = self.tallies.entry((call.thread, call.function)).or_default();
        tally.calls += 1;
        tally.ns += call.end_ns.saturating_sub(call.begin_ns);
        tally.bytes = tally.bytes.saturating_add(call.bytes.unwrap_or(0));
        if self.calls.len() < MOST_CALLS {
            self.calls.push(call);
        } else {
            self.dropped += 1;
        }
    }

    /// Returns the bytes, the partner and the tag of a call that begins now, from its arguments.
    fn amount(&self, function: u16, guest: &mut Guest) -> (Option<u64>, Option<u32>, Option<u32>) {
        let functions::Function { arguments: Some(arguments), kind, .. } = *functions::at(function) else {
            return (None, None, None);
        };
        // Counts, ranks and tags are ints; negative ones are wildcards and MPI_PROC_NULL.
        let int = |guest: &Guest, place: u8| u32::try_from(guest.cpu().x(place) as i32).ok();
        let count = int(guest, arguments.count);
        let size = datatype_bytes(guest.cpu().x(arguments.count + 1), guest);
        let bytes = count.zip(size).map(|(count, bytes)| u64::from(count).saturating_mul(bytes));
        let rank = arguments.partner.and_then(|place| int(guest, place));
        let communicator = functions::communicator(function).and_then(|place| functions::argument(place, guest));
        let partner = rank.zip(communicator);
        let partner = partner.and_then(|(rank, handle)| self.communicators.translated(guest.pid(), handle, rank));
        // Of a message, the tag comes behind the partner.
        let has_tag = matches!(kind, Kind::Send | Kind::Receive);
        let tag = arguments.partner.filter(|_| has_tag).and_then(|place| int(guest, place + 1));
        (bytes, partner, tag)
    }

    /// Notes a call that makes a communicator.
    fn making(&mut self, function: u16, guest: &mut Guest) -> Option<MakingCall> {
        let making = functions::making(function)?;
        let rank = guest.process_of_thread(guest.thread().tid)?.rank?;
        self.communicators.makes(making, rank, guest)
    }

    /// Returns the calls that have not ended, by the number of their thread.
    pub(crate) fn open_calls(&self) -> BTreeMap<u32, OpenCall> {
        let known = |open: &Open| {
            let Call { bytes, partner, begin_ns, .. } = open.call;
            OpenCall { name: open.call.name(), kind: open.call.kind(), bytes, partner, tag: open.tag, begin_ns }
        };
        (0..).zip(&self.open).filter_map(|(thread, open)| Some((thread, known(open.as_ref()?)))).collect()
    }

    /// Returns all calls; those that have not ended end now, which is a time for each thread.
    pub(crate) fn finish(mut self, now_ns: impl Fn(u32) -> u64) -> Calls {
        let ends = |open: &Open| Call { end_ns: now_ns(open.call.thread), ..open.call };
        let open: Vec<Call> = self.open.iter().flatten().map(ends).collect();
        open.into_iter().for_each(|call| self.ended(call));
        let sum = |(&(thread, function), tally): (&(u32, u16), &Tally)| {
            let functions::Function { name, kind, .. } = *functions::at(function);
            Sum { thread, name, kind, calls: tally.calls, ns: tally.ns, bytes: tally.bytes }
        };
        Calls { sums: self.tallies.iter().map(sum).collect(), calls: self.calls, dropped: self.dropped }
    }
}

/// Returns the place in a stack, the innermost function first, of the outermost function of MPI: the one that the program has called.
#[must_use]
pub fn outermost(stack: &[Frame]) -> Option<usize> {
    stack.iter().rposition(|frame| frame.function.as_deref().and_then(Entry::of).is_some())
}

/// Returns the size of a datatype, bytes.
///
/// MPICH's handles are ints: those of built-in types have the size in bits 8 to 15 (`MPICH_DATATYPE`, 0x4c). Open MPI's are addresses
/// of structures that have the size as their fifth word: 16 bytes of object, then flags, number and use, then the size
/// (`opal_datatype_t`). Sizes of other handles are not known.
fn datatype_bytes(handle: u64, guest: &mut Guest) -> Option<u64> {
    const BUILT_IN: u64 = 0x4c;
    const SIZE_OFFSET: u64 = 24;
    /// No datatype is larger; what is larger is no datatype.
    const MOST: u64 = 1 << 40;
    let handle_kind = (handle & 0xffff_ffff) >> 24;
    if handle_kind == BUILT_IN {
        return Some(handle >> 8 & 0xff);
    }
    // MPICH's derived types (0x8c) and pointers below 4 GiB of no library.
    if handle >> 32 == 0 && handle_kind & 0x3f == 0x0c {
        return None;
    }
    guest.read_word(handle.checked_add(SIZE_OFFSET)?).filter(|&bytes| bytes <= MOST)
}
