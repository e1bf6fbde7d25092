//! Region markers, and functions of MPI: where programs mark the beginning and the end of a region, by calls for other tools, which are
//! recognised by function name, or by the probes of `include/fxscope.h`.

use fxscope_isa::Branch;
use fxscope_linux::{Guest, Symbols};
use fxscope_record::functions::meant;

use crate::mpi::Entry;

/// Longest region name, bytes.
const NAME_BYTES: u64 = 256;
/// The name of a region without one.
const UNNAMED: &str = "region";
/// The providers of probes that mark regions.
const BEGIN_PROBE: &str = "fxscope_begin";
const END_PROBE: &str = "fxscope_end";

/// The beginning or the end of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// How the program names the region. Arguments are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum Naming {
    /// By argument 0, a zero-terminated string.
    C,
    /// By argument 0 and a number, argument 1.
    CNumber,
    /// By argument 0, a string whose length is argument `length`, without trailing spaces.
    Fortran { length: u8 },
    /// By the same and a number that argument 1 points to.
    FortranNumber { length: u8 },
    /// By nothing: it is called `fipp`.
    Fipp,
    /// By nothing: it is the one that began last.
    Last,
}

/// The functions that mark regions: fxscope's own, those of Fujitsu's profilers (fapp, fipp, and that of the K
/// computer), PAPI's high-level regions, LIKWID's marker API. Fortran names are mangled as by GNU Fortran.
const CALLS: &[(&str, Edge, Naming)] = &[
    ("fxscope_roi_begin", Edge::Begin, Naming::C),
    ("fxscope_roi_end", Edge::End, Naming::Last),
    ("fxscope_begin_", Edge::Begin, Naming::Fortran { length: 1 }),
    ("fxscope_end_", Edge::End, Naming::Fortran { length: 1 }),
    ("fapp_start", Edge::Begin, Naming::CNumber),
    ("fapp_stop", Edge::End, Naming::CNumber),
    ("fapp_start_", Edge::Begin, Naming::FortranNumber { length: 3 }),
    ("fapp_stop_", Edge::End, Naming::FortranNumber { length: 3 }),
    ("fipp_start", Edge::Begin, Naming::Fipp),
    ("fipp_stop", Edge::End, Naming::Fipp),
    ("fipp_start_", Edge::Begin, Naming::Fipp),
    ("fipp_stop_", Edge::End, Naming::Fipp),
    ("start_collection", Edge::Begin, Naming::C),
    ("stop_collection", Edge::End, Naming::C),
    ("start_collection_", Edge::Begin, Naming::Fortran { length: 1 }),
    ("stop_collection_", Edge::End, Naming::Fortran { length: 1 }),
    ("PAPI_hl_region_begin", Edge::Begin, Naming::C),
    ("PAPI_hl_region_end", Edge::End, Naming::C),
    ("papif_hl_region_begin_", Edge::Begin, Naming::Fortran { length: 2 }),
    ("papif_hl_region_end_", Edge::End, Naming::Fortran { length: 2 }),
    ("likwid_markerStartRegion", Edge::Begin, Naming::C),
    ("likwid_markerStopRegion", Edge::End, Naming::C),
    ("likwid_markerstartregion_", Edge::Begin, Naming::Fortran { length: 1 }),
    ("likwid_markerstopregion_", Edge::End, Naming::Fortran { length: 1 }),
];

/// A marker at an address.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
enum Marker {
    /// The entry of a function that is called with the name.
    Call(Edge, Naming),
    /// A probe with the name of the region.
    Probe(Edge, Box<str>),
    /// The entry of a function of MPI.
    Mpi(Entry),
}

/// The markers of the current program.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Markers {
    /// By ascending address.
    at: Vec<(u64, Marker)>,
    /// The version of the symbols that they are from.
    version: u64,
    /// Whether functions of MPI are among them.
    has_mpi: bool,
    /// Functions whose calls are followed: their names, and where they begin, by ascending address.
    functions: Vec<String>,
    begins: Vec<(u64, u32)>,
}

/// Returns where functions begin, by ascending address: those of these names or, where there is none, what the compiler has made of them.
fn begins(symbols: &Symbols, functions: &[String]) -> Vec<(u64, u32)> {
    if functions.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = symbols.functions().map(|(name, _)| name).collect();
    let meant: Vec<Vec<&str>> = functions.iter().map(|function| meant(function, names.iter().copied())).collect();
    let watched = |(name, address): (&str, u64)| {
        let number = meant.iter().position(|meant| meant.contains(&name))?;
        Some((address, number as u32))
    };
    symbols.functions().filter_map(watched).collect()
}

impl Markers {
    /// Returns the markers of the current program and the libraries that it has loaded, and the beginnings of `functions`.
    pub(crate) fn of(guest: &Guest, functions: &[String]) -> Markers {
        let symbols = guest.running_symbols();
        let call = |(name, address): (&str, u64)| {
            let marker = match CALLS.iter().find(|call| call.0 == name) {
                Some(&(_, edge, naming)) => Marker::Call(edge, naming),
                None => Marker::Mpi(Entry::of(name)?),
            };
            Some((address, marker))
        };
        let probe = |probe: &fxscope_linux::Probe| {
            let edge = match &*probe.provider {
                BEGIN_PROBE => Edge::Begin,
                END_PROBE => Edge::End,
                _ => return None,
            };
            Some((probe.address, Marker::Probe(edge, probe.name.clone())))
        };
        let calls = symbols.functions().filter_map(call);
        let mut at: Vec<_> = calls.chain(symbols.probes().iter().filter_map(probe)).collect();
        at.sort_by_key(|mark| mark.0);
        let has_mpi = at.iter().any(|mark| matches!(mark.1, Marker::Mpi(_)));
        let begins = begins(symbols, functions);
        Markers { at, version: symbols.version(), has_mpi, functions: functions.to_vec(), begins }
    }

    /// Adds the markers of libraries that were loaded since.
    #[inline(always)]
    pub(crate) fn learn(&mut self, guest: &Guest) {
        if guest.running_symbols().version() != self.version {
            *self = Markers::of(guest, &std::mem::take(&mut self.functions));
        }
    }

    fn find(&self, address: u64) -> Option<&Marker> {
        let i = self.at.binary_search_by_key(&address, |mark| mark.0).ok()?;
        Some(&self.at[i].1)
    }

    /// Returns whether a block may reach a marker: it calls or jumps, or a probe ends it.
    pub(crate) fn may_meet(&self, branch: Branch, last: u64) -> bool {
        let calls = matches!(branch, Branch::Direct | Branch::Call | Branch::Indirect | Branch::IndirectCall);
        // Functions that are followed end where they return.
        let returns = (self.has_mpi || !self.functions.is_empty()) && branch == Branch::Return;
        calls || returns || matches!(self.find(last), Some(Marker::Probe(..)))
    }

    /// Returns whether the program, or a library of it, has functions of MPI.
    pub(crate) fn has_mpi(&self) -> bool {
        self.has_mpi
    }

    /// Returns the function of MPI that begins at an address.
    pub(crate) fn mpi_at(&self, address: u64) -> Option<Entry> {
        match self.find(address)? {
            &Marker::Mpi(entry) => Some(entry),
            _ => None,
        }
    }

    /// Returns the names of the functions whose calls are followed.
    pub(crate) fn functions(&self) -> &[String] {
        &self.functions
    }

    /// Returns the name of the function that begins at an address, if its calls are followed.
    pub(crate) fn function_at(&self, address: u64) -> Option<&str> {
        let i = self.begins.binary_search_by_key(&address, |begin| begin.0).ok()?;
        self.functions.get(self.begins[i].1 as usize).map(String::as_str)
    }

    /// Returns whether a probe that marks a region is at an address.
    pub(crate) fn has_probe(&self, address: u64) -> bool {
        matches!(self.find(address), Some(Marker::Probe(..)))
    }

    /// Iterates over the addresses at which a functional run has to stop: where functions begin, and behind probes.
    pub(crate) fn stops(&self) -> impl Iterator<Item = u64> + '_ {
        let marks = self.at.iter().filter_map(|(address, marker)| match marker {
            Marker::Call(..) => Some(*address),
            Marker::Probe(..) => Some(address.wrapping_add(4)),
            Marker::Mpi(_) => None,
        });
        marks.chain(self.begins.iter().map(|begin| begin.0))
    }

    /// Returns whether a marker is at a block's last instruction, `last`, or at the next one, `next`.
    pub(crate) fn is_met(&self, last: u64, next: u64) -> bool {
        self.find(last).is_some() || self.find(next).is_some()
    }

    /// Returns the marker at the block's last instruction, `last`, or at the program counter: its edge, and the name of the
    /// region if the program gives one.
    pub(crate) fn met(&self, last: u64, guest: &mut Guest) -> Option<(Edge, Option<String>)> {
        if let Some(Marker::Probe(edge, name)) = self.find(last) {
            return Some((*edge, Some(name.to_string())));
        }
        match self.find(guest.cpu().pc)? {
            &Marker::Call(edge, naming) => Some((edge, name(naming, guest))),
            Marker::Probe(..) | Marker::Mpi(_) => None,
        }
    }
}

/// Returns the name of the region in the arguments of the called function.
fn name(naming: Naming, guest: &mut Guest) -> Option<String> {
    let [text, number] = [0, 1].map(|argument| guest.cpu().x(argument));
    match naming {
        Naming::Last => None,
        Naming::Fipp => Some("fipp".to_owned()),
        Naming::C => Some(read(guest, text, NAME_BYTES)),
        // The number is an int.
        Naming::CNumber => Some(format!("{}, {}", read(guest, text, NAME_BYTES), number as i32)),
        Naming::Fortran { length } => Some(fortran(guest, text, length)),
        Naming::FortranNumber { length } => {
            let mut bytes = [0; 4];
            bytes.iter_mut().zip(number..).for_each(|(byte, at)| *byte = guest.read_byte(at).unwrap_or(0));
            Some(format!("{}, {}", fortran(guest, text, length), i32::from_le_bytes(bytes)))
        }
    }
}

/// Reads the string at an address, whose length is argument number `length`.
fn fortran(guest: &mut Guest, text: u64, length: u8) -> String {
    let length = guest.cpu().x(length).min(NAME_BYTES);
    read(guest, text, length)
}

/// Reads the string at an address, up to a zero or `length` bytes, without trailing spaces.
fn read(guest: &mut Guest, text: u64, length: u64) -> String {
    let bytes: Vec<u8> = (0..length).map_while(|i| guest.read_byte(text.wrapping_add(i)).filter(|&b| b != 0)).collect();
    let name = String::from_utf8_lossy(&bytes);
    let name = name.trim_end();
    if name.is_empty() { UNNAMED.to_owned() } else { name.to_owned() }
}
