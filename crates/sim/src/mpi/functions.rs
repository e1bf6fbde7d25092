//! The functions of MPI: what kind of work each does, and where its arguments say how much.

use fxscope_aarch64::Cpu;
use fxscope_linux::Guest;
use serde::{Deserialize, Serialize};

/// What a call of MPI is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// It hands a message over to another rank, or begins to.
    Send,
    /// It receives a message, or begins to.
    Receive,
    /// It waits for, or looks for, messages or requests.
    Wait,
    /// All ranks of a communicator take part.
    Collective,
    /// It accesses the window of another rank, or synchronises such accesses.
    OneSided,
    /// It starts, ends or arranges: communicators, datatypes, windows, files.
    Other,
}

impl Kind {
    /// All kinds, in the order of reports.
    pub const ALL: [Kind; 6] = [Kind::Send, Kind::Receive, Kind::Wait, Kind::Collective, Kind::OneSided, Kind::Other];

    /// Returns its name in reports and records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Send => "send",
            Kind::Receive => "receive",
            Kind::Wait => "wait",
            Kind::Collective => "collective",
            Kind::OneSided => "one-sided",
            Kind::Other => "other",
        }
    }
}

/// The places of arguments, counted from 0, in the C interface (MPI 4.0, chapters 3, 6 and 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// The number of elements, whose datatype is the argument after it.
    pub count: u8,
    /// The rank of the partner, if there is one.
    pub partner: Option<u8>,
}

/// Which ranks a communicator has that a function makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Members {
    /// Those of the communicator from which it is made, in the same order.
    Same,
    /// The same, unless this argument allows another order.
    SameUnless(u8),
    /// Those with the same color, in the order of their keys. With `MPI_COMM_TYPE_SHARED` as the color, all ranks of the node.
    Split {
        /// The argument with the color.
        color: u8,
        /// That with the key.
        key: u8,
    },
    /// It does not follow from the arguments.
    Unknown,
}

/// Where the arguments of a function that makes a communicator, or a window, have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Making {
    /// The communicator from which it is made.
    pub from: u8,
    /// Where the new handle is written.
    pub new: u8,
    pub members: Members,
}

/// The functions that make communicators and windows, with their arguments in C (MPI 4.0, chapters 7, 8 and 12).
const MAKING: &[(&str, Making)] = &[
    ("MPI_Cart_create", Making { from: 0, new: 5, members: Members::SameUnless(4) }),
    ("MPI_Cart_sub", Making { from: 0, new: 2, members: Members::Unknown }),
    ("MPI_Comm_create", Making { from: 0, new: 2, members: Members::Unknown }),
    ("MPI_Comm_create_group", Making { from: 0, new: 3, members: Members::Unknown }),
    ("MPI_Comm_dup", Making { from: 0, new: 1, members: Members::Same }),
    ("MPI_Comm_dup_with_info", Making { from: 0, new: 2, members: Members::Same }),
    ("MPI_Comm_idup", Making { from: 0, new: 1, members: Members::Same }),
    ("MPI_Comm_spawn", Making { from: 5, new: 6, members: Members::Unknown }),
    ("MPI_Comm_split", Making { from: 0, new: 3, members: Members::Split { color: 1, key: 2 } }),
    ("MPI_Comm_split_type", Making { from: 0, new: 4, members: Members::Split { color: 1, key: 2 } }),
    ("MPI_Dist_graph_create", Making { from: 0, new: 8, members: Members::SameUnless(7) }),
    ("MPI_Dist_graph_create_adjacent", Making { from: 0, new: 9, members: Members::SameUnless(8) }),
    ("MPI_Graph_create", Making { from: 0, new: 5, members: Members::SameUnless(4) }),
    ("MPI_Intercomm_create", Making { from: 0, new: 5, members: Members::Unknown }),
    ("MPI_Intercomm_merge", Making { from: 0, new: 2, members: Members::Unknown }),
    ("MPI_Win_allocate", Making { from: 3, new: 5, members: Members::Same }),
    ("MPI_Win_allocate_shared", Making { from: 3, new: 5, members: Members::Same }),
    ("MPI_Win_create", Making { from: 4, new: 5, members: Members::Same }),
    ("MPI_Win_create_dynamic", Making { from: 1, new: 2, members: Members::Same }),
];

/// Returns where a function's arguments have the communicator that it makes, if it makes one.
pub(super) fn making(function: u16) -> Option<Making> {
    let name = at(function).name;
    MAKING.iter().find(|(known, _)| *known == name).map(|&(_, making)| making)
}

/// Returns the argument in which a function with a partner has its communicator, or window.
pub(super) fn communicator(function: u16) -> Option<u8> {
    let Function { name, kind, arguments } = *at(function);
    let partner = arguments?.partner?;
    Some(match (name, kind) {
        ("MPI_Sendrecv", _) => 10,
        ("MPI_Sendrecv_replace", _) => 7,
        ("MPI_Accumulate" | "MPI_Raccumulate", _) => partner + 5,
        // Where in the window, how many, of which type.
        (_, Kind::OneSided) => partner + 4,
        // The tag.
        _ => partner + 2,
    })
}

/// Returns an argument of the function that begins: the first eight are in registers, further ones on the stack, a word each
/// (AAPCS64, section 6.8.2).
pub(super) fn argument(place: u8, guest: &mut Guest) -> Option<u64> {
    if place < 8 {
        return Some(guest.cpu().x(place));
    }
    let stack = guest.cpu().x(Cpu::SP);
    guest.read_word(stack.checked_add(8 * (u64::from(place) - 8))?)
}

/// Returns a handle from a word that has it: those of MPICH are ints with the bit 0x40000000, whose upper half is not defined; those of
/// Open MPI are addresses, of which programs have none with such a lower half and an upper half of 0.
pub(super) fn handle(word: u64) -> u64 {
    const KIND: u64 = 0x3c00_0000;
    const COMMUNICATOR: u64 = 0x0400_0000;
    const WINDOW: u64 = 0x2000_0000;
    let low = word & 0xffff_ffff;
    let of_mpich = [COMMUNICATOR, WINDOW].contains(&(low & KIND)) && low >> 30 != 0 && low & 0x0300_0000 == 0;
    if of_mpich { low } else { word }
}

/// A function of MPI.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function {
    /// Its name in C, without the `P` of the profiling interface.
    pub name: &'static str,
    pub kind: Kind,
    /// Where its arguments say how much is transferred; `None`: nothing, or they do not.
    pub arguments: Option<Arguments>,
}

const fn plain(name: &'static str, kind: Kind) -> Function {
    Function { name, kind, arguments: None }
}

const fn counted(name: &'static str, kind: Kind, count: u8) -> Function {
    Function { name, kind, arguments: Some(Arguments { count, partner: None }) }
}

const fn message(name: &'static str, kind: Kind, partner: u8) -> Function {
    Function { name, kind, arguments: Some(Arguments { count: 1, partner: Some(partner) }) }
}

/// The functions that are shown by name, in ascending order of their names in lower case. All others are [`OTHER`].
pub(crate) const FUNCTIONS: &[Function] = &[
    plain("MPI_Abort", Kind::Other),
    message("MPI_Accumulate", Kind::OneSided, 3),
    counted("MPI_Allgather", Kind::Collective, 1),
    counted("MPI_Allgatherv", Kind::Collective, 1),
    counted("MPI_Allreduce", Kind::Collective, 2),
    counted("MPI_Alltoall", Kind::Collective, 1),
    plain("MPI_Alltoallv", Kind::Collective),
    plain("MPI_Alltoallw", Kind::Collective),
    plain("MPI_Barrier", Kind::Collective),
    counted("MPI_Bcast", Kind::Collective, 1),
    message("MPI_Bsend", Kind::Send, 3),
    plain("MPI_Bsend_init", Kind::Other),
    plain("MPI_Cart_create", Kind::Other),
    plain("MPI_Cart_sub", Kind::Other),
    plain("MPI_Comm_create", Kind::Other),
    plain("MPI_Comm_create_group", Kind::Other),
    plain("MPI_Comm_dup", Kind::Other),
    plain("MPI_Comm_dup_with_info", Kind::Other),
    plain("MPI_Comm_free", Kind::Other),
    plain("MPI_Comm_idup", Kind::Other),
    plain("MPI_Comm_spawn", Kind::Other),
    plain("MPI_Comm_split", Kind::Other),
    plain("MPI_Comm_split_type", Kind::Other),
    plain("MPI_Compare_and_swap", Kind::OneSided),
    plain("MPI_Dist_graph_create", Kind::Other),
    plain("MPI_Dist_graph_create_adjacent", Kind::Other),
    counted("MPI_Exscan", Kind::Collective, 2),
    plain("MPI_Fetch_and_op", Kind::OneSided),
    plain("MPI_File_close", Kind::Other),
    plain("MPI_File_open", Kind::Other),
    plain("MPI_File_read", Kind::Other),
    plain("MPI_File_read_all", Kind::Other),
    plain("MPI_File_read_at", Kind::Other),
    plain("MPI_File_read_at_all", Kind::Other),
    plain("MPI_File_set_view", Kind::Other),
    plain("MPI_File_write", Kind::Other),
    plain("MPI_File_write_all", Kind::Other),
    plain("MPI_File_write_at", Kind::Other),
    plain("MPI_File_write_at_all", Kind::Other),
    plain("MPI_Finalize", Kind::Other),
    counted("MPI_Gather", Kind::Collective, 1),
    counted("MPI_Gatherv", Kind::Collective, 1),
    message("MPI_Get", Kind::OneSided, 3),
    plain("MPI_Get_accumulate", Kind::OneSided),
    plain("MPI_Graph_create", Kind::Other),
    counted("MPI_Iallgather", Kind::Collective, 1),
    counted("MPI_Iallgatherv", Kind::Collective, 1),
    counted("MPI_Iallreduce", Kind::Collective, 2),
    counted("MPI_Ialltoall", Kind::Collective, 1),
    plain("MPI_Ialltoallv", Kind::Collective),
    plain("MPI_Ialltoallw", Kind::Collective),
    plain("MPI_Ibarrier", Kind::Collective),
    counted("MPI_Ibcast", Kind::Collective, 1),
    message("MPI_Ibsend", Kind::Send, 3),
    counted("MPI_Iexscan", Kind::Collective, 2),
    counted("MPI_Igather", Kind::Collective, 1),
    counted("MPI_Igatherv", Kind::Collective, 1),
    plain("MPI_Improbe", Kind::Wait),
    counted("MPI_Imrecv", Kind::Receive, 1),
    counted("MPI_Ineighbor_allgather", Kind::Collective, 1),
    counted("MPI_Ineighbor_alltoall", Kind::Collective, 1),
    plain("MPI_Init", Kind::Other),
    plain("MPI_Init_thread", Kind::Other),
    plain("MPI_Intercomm_create", Kind::Other),
    plain("MPI_Intercomm_merge", Kind::Other),
    plain("MPI_Iprobe", Kind::Wait),
    message("MPI_Irecv", Kind::Receive, 3),
    counted("MPI_Ireduce", Kind::Collective, 2),
    plain("MPI_Ireduce_scatter", Kind::Collective),
    counted("MPI_Ireduce_scatter_block", Kind::Collective, 2),
    message("MPI_Irsend", Kind::Send, 3),
    counted("MPI_Iscan", Kind::Collective, 2),
    counted("MPI_Iscatter", Kind::Collective, 1),
    plain("MPI_Iscatterv", Kind::Collective),
    message("MPI_Isend", Kind::Send, 3),
    message("MPI_Issend", Kind::Send, 3),
    plain("MPI_Mprobe", Kind::Wait),
    counted("MPI_Mrecv", Kind::Receive, 1),
    counted("MPI_Neighbor_allgather", Kind::Collective, 1),
    counted("MPI_Neighbor_allgatherv", Kind::Collective, 1),
    counted("MPI_Neighbor_alltoall", Kind::Collective, 1),
    plain("MPI_Neighbor_alltoallv", Kind::Collective),
    plain("MPI_Neighbor_alltoallw", Kind::Collective),
    plain("MPI_Precv_init", Kind::Other),
    plain("MPI_Probe", Kind::Wait),
    plain("MPI_Psend_init", Kind::Other),
    message("MPI_Put", Kind::OneSided, 3),
    message("MPI_Raccumulate", Kind::OneSided, 3),
    message("MPI_Recv", Kind::Receive, 3),
    plain("MPI_Recv_init", Kind::Other),
    counted("MPI_Reduce", Kind::Collective, 2),
    plain("MPI_Reduce_scatter", Kind::Collective),
    counted("MPI_Reduce_scatter_block", Kind::Collective, 2),
    message("MPI_Rget", Kind::OneSided, 3),
    message("MPI_Rput", Kind::OneSided, 3),
    message("MPI_Rsend", Kind::Send, 3),
    plain("MPI_Rsend_init", Kind::Other),
    counted("MPI_Scan", Kind::Collective, 2),
    counted("MPI_Scatter", Kind::Collective, 1),
    plain("MPI_Scatterv", Kind::Collective),
    message("MPI_Send", Kind::Send, 3),
    plain("MPI_Send_init", Kind::Other),
    message("MPI_Sendrecv", Kind::Send, 3),
    message("MPI_Sendrecv_replace", Kind::Send, 3),
    message("MPI_Ssend", Kind::Send, 3),
    plain("MPI_Ssend_init", Kind::Other),
    plain("MPI_Start", Kind::Send),
    plain("MPI_Startall", Kind::Send),
    plain("MPI_Test", Kind::Wait),
    plain("MPI_Testall", Kind::Wait),
    plain("MPI_Testany", Kind::Wait),
    plain("MPI_Testsome", Kind::Wait),
    plain("MPI_Wait", Kind::Wait),
    plain("MPI_Waitall", Kind::Wait),
    plain("MPI_Waitany", Kind::Wait),
    plain("MPI_Waitsome", Kind::Wait),
    plain("MPI_Win_allocate", Kind::Other),
    plain("MPI_Win_allocate_shared", Kind::Other),
    plain("MPI_Win_complete", Kind::OneSided),
    plain("MPI_Win_create", Kind::Other),
    plain("MPI_Win_create_dynamic", Kind::Other),
    plain("MPI_Win_fence", Kind::OneSided),
    plain("MPI_Win_flush", Kind::OneSided),
    plain("MPI_Win_flush_all", Kind::OneSided),
    plain("MPI_Win_flush_local", Kind::OneSided),
    plain("MPI_Win_flush_local_all", Kind::OneSided),
    plain("MPI_Win_free", Kind::Other),
    plain("MPI_Win_lock", Kind::OneSided),
    plain("MPI_Win_lock_all", Kind::OneSided),
    plain("MPI_Win_post", Kind::OneSided),
    plain("MPI_Win_start", Kind::OneSided),
    plain("MPI_Win_sync", Kind::OneSided),
    plain("MPI_Win_unlock", Kind::OneSided),
    plain("MPI_Win_unlock_all", Kind::OneSided),
    plain("MPI_Win_wait", Kind::OneSided),
];

/// What all functions that [`FUNCTIONS`] does not list count as.
pub(crate) const OTHER: Function = plain("other functions", Kind::Other);

/// The entry of a function of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its place in [`FUNCTIONS`]; that of [`OTHER`] is behind the last one.
    pub function: u16,
    /// Whether it is called from Fortran: with the addresses of its arguments.
    pub by_reference: bool,
}

impl Entry {
    /// Returns the entry that a symbol names: in C, in Fortran as GNU Fortran mangles names (lower case, with an underscore behind),
    /// or of the profiling interface. `None`: it is no function of MPI.
    pub(crate) fn of(symbol: &str) -> Option<Entry> {
        let name = symbol.strip_prefix(['P', 'p']).unwrap_or(symbol);
        let by_reference = !name.starts_with("MPI_");
        let name = if by_reference {
            name.strip_suffix('_').filter(|name| name.starts_with("mpi_"))?.to_owned()
        } else {
            name.to_ascii_lowercase()
        };
        let place = FUNCTIONS.binary_search_by(|function| function.name.to_ascii_lowercase().cmp(&name));
        Some(Entry { function: place.unwrap_or(FUNCTIONS.len()) as u16, by_reference })
    }
}

/// Returns the function at a place.
pub(crate) fn at(place: u16) -> &'static Function {
    FUNCTIONS.get(usize::from(place)).unwrap_or(&OTHER)
}

#[cfg(test)]
mod tests {
    use super::{Entry, FUNCTIONS, at};

    fn name(symbol: &str) -> Option<&'static str> {
        Entry::of(symbol).map(|entry| at(entry.function).name)
    }

    #[test]
    fn functions_are_in_the_order_in_which_they_are_searched() {
        assert!(FUNCTIONS.is_sorted_by_key(|function| function.name.to_ascii_lowercase()));
    }

    #[test]
    fn functions_that_make_communicators_are_among_those_shown_by_name() {
        for (name, making) in super::MAKING {
            let Entry { function, .. } = Entry::of(name).expect("a function of MPI");
            assert_eq!((at(function).name, super::making(function)), (*name, Some(*making)));
        }
    }

    #[test]
    fn handles_of_mpich_are_the_lower_half_of_a_word() {
        assert_eq!(super::handle(0xffff_ffff_8400_0002), 0x8400_0002);
        assert_eq!(super::handle(0x1234_4400_0000), 0x4400_0000);
        assert_eq!(super::handle(0xffff_e123_4560), 0xffff_e123_4560);
    }

    #[test]
    fn symbols_of_c_fortran_and_the_profiling_interface_name_the_same_function() {
        for symbol in ["MPI_Allreduce", "PMPI_Allreduce", "mpi_allreduce_", "pmpi_allreduce_"] {
            assert_eq!(name(symbol), Some("MPI_Allreduce"), "{symbol}");
        }
        assert_eq!(name("MPI_Type_commit"), Some("other functions"));
        for symbol in ["MPIR_Allreduce", "ompi_send", "mpi_send", "PMI_Init", "MPI", "main"] {
            assert_eq!(Entry::of(symbol), None, "{symbol}");
        }
    }
}
