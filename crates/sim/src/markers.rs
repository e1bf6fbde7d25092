//! Where programs say that a part of them begins or ends: calls that they have for other tools already, recognised by the
//! names of the functions, and the marks of `include/fxscope.h`.

use fxscope_isa::Branch;
use fxscope_linux::Guest;

/// Longest name read from the program, bytes.
const NAME_BYTES: u64 = 256;
/// The name of a region that the program gives none.
const UNNAMED: &str = "region";
/// Whose probes are markers.
const BEGIN_PROBE: &str = "fxscope_begin";
const END_PROBE: &str = "fxscope_end";

/// Which end of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    Begin,
    End,
}

/// How the program names the region; arguments are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Naming {
    /// By argument 0, a text that a zero ends.
    C,
    /// By that and a number, argument 1.
    CNumber,
    /// By argument 0, a text whose length this argument has, spaces at its end left out.
    Fortran {
        length: u8,
    },
    /// By that and a number that argument 1 points to.
    FortranNumber {
        length: u8,
    },
    /// By nothing: it is the one that began last, or is called so.
    Fixed(&'static str),
    Last,
}

/// The functions that programs call at the edges of regions: fxscope's own, those of Fujitsu's profilers (fapp; fipp and
/// that of the K computer), PAPI's high-level regions, LIKWID's marker API. Fortran's names are those that
/// GNU's compiler makes of them.
const CALLS: &[(&str, Edge, Naming)] = &[
    ("fxscope_roi_begin", Edge::Begin, Naming::C),
    ("fxscope_roi_end", Edge::End, Naming::Last),
    ("fxscope_begin_", Edge::Begin, Naming::Fortran { length: 1 }),
    ("fxscope_end_", Edge::End, Naming::Fortran { length: 1 }),
    ("fapp_start", Edge::Begin, Naming::CNumber),
    ("fapp_stop", Edge::End, Naming::CNumber),
    ("fapp_start_", Edge::Begin, Naming::FortranNumber { length: 3 }),
    ("fapp_stop_", Edge::End, Naming::FortranNumber { length: 3 }),
    ("fipp_start", Edge::Begin, Naming::Fixed("fipp")),
    ("fipp_stop", Edge::End, Naming::Fixed("fipp")),
    ("fipp_start_", Edge::Begin, Naming::Fixed("fipp")),
    ("fipp_stop_", Edge::End, Naming::Fixed("fipp")),
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

/// What is marked at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Marker {
    /// A function begins, called with the name.
    Call(Edge, Naming),
    /// A probe, whose name is that of the region.
    Probe(Edge, Box<str>),
}

/// The marks of the program that runs.
#[derive(Default)]
pub(crate) struct Markers {
    /// By ascending address.
    at: Vec<(u64, Marker)>,
    /// Version of the names that they are from.
    version: u64,
}

impl Markers {
    /// Those of the program that runs and the libraries it has so far.
    pub(crate) fn of(process: &Guest) -> Markers {
        let symbols = process.running_symbols();
        let call = |(name, address): (&str, u64)| {
            let &(_, edge, naming) = CALLS.iter().find(|call| call.0 == name)?;
            Some((address, Marker::Call(edge, naming)))
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
        Markers { at, version: symbols.version() }
    }

    /// Learns the marks of libraries that have come since.
    #[inline(always)]
    pub(crate) fn learn(&mut self, process: &Guest) {
        if process.running_symbols().version() != self.version {
            *self = Markers::of(process);
        }
    }

    fn find(&self, address: u64) -> Option<&Marker> {
        let i = self.at.binary_search_by_key(&address, |mark| mark.0).ok()?;
        Some(&self.at[i].1)
    }

    /// Whether a block may reach a mark: it calls or jumps, or a probe ends it.
    pub(crate) fn may_meet(&self, branch: Branch, last: u64) -> bool {
        let calls = matches!(branch, Branch::Direct | Branch::Call | Branch::Indirect | Branch::IndirectCall);
        calls || matches!(self.find(last), Some(Marker::Probe(..)))
    }

    /// Whether something is marked at a block's last instruction, `last`, or behind it at `next`.
    pub(crate) fn is_met(&self, last: u64, next: u64) -> bool {
        self.find(last).is_some() || self.find(next).is_some()
    }

    /// What is marked at the block's last instruction, `last`, or where the program is now: which edge, and the name of
    /// the region if the program gives one.
    pub(crate) fn met(&self, last: u64, process: &mut Guest) -> Option<(Edge, Option<String>)> {
        if let Some(Marker::Probe(edge, name)) = self.find(last) {
            return Some((*edge, Some(name.to_string())));
        }
        match self.find(process.cpu().pc)? {
            &Marker::Call(edge, naming) => Some((edge, name(naming, process))),
            Marker::Probe(..) => None,
        }
    }
}

/// The name of the region that the arguments of the function called have.
fn name(naming: Naming, process: &mut Guest) -> Option<String> {
    let [text, number] = [0, 1].map(|argument| process.cpu().x(argument));
    match naming {
        Naming::Last => None,
        Naming::Fixed(name) => Some(name.to_owned()),
        Naming::C => Some(read(process, text, NAME_BYTES)),
        // The number is an int.
        Naming::CNumber => Some(format!("{}, {}", read(process, text, NAME_BYTES), number as i32)),
        Naming::Fortran { length } => Some(fortran(process, text, length)),
        Naming::FortranNumber { length } => {
            let mut bytes = [0; 4];
            bytes.iter_mut().zip(number..).for_each(|(byte, at)| *byte = process.read_byte(at).unwrap_or(0));
            Some(format!("{}, {}", fortran(process, text, length), i32::from_le_bytes(bytes)))
        }
    }
}

/// The text at an address, as long as argument number `length` says.
fn fortran(process: &mut Guest, text: u64, length: u8) -> String {
    let length = process.cpu().x(length).min(NAME_BYTES);
    read(process, text, length)
}

/// The text at an address, up to a zero or `length` bytes, without spaces at its end.
fn read(process: &mut Guest, text: u64, length: u64) -> String {
    let bytes: Vec<u8> =
        (0..length).map_while(|i| process.read_byte(text.wrapping_add(i)).filter(|&b| b != 0)).collect();
    let name = String::from_utf8_lossy(&bytes);
    let name = name.trim_end();
    if name.is_empty() { UNNAMED.to_owned() } else { name.to_owned() }
}
