//! The functions of MPI: what kind of work each does, and where its arguments say how much.

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
    plain("MPI_Comm_create", Kind::Other),
    plain("MPI_Comm_dup", Kind::Other),
    plain("MPI_Comm_free", Kind::Other),
    plain("MPI_Comm_idup", Kind::Other),
    plain("MPI_Comm_spawn", Kind::Other),
    plain("MPI_Comm_split", Kind::Other),
    plain("MPI_Comm_split_type", Kind::Other),
    plain("MPI_Compare_and_swap", Kind::OneSided),
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
