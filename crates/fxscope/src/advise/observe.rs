//! What a run tells about its accesses: TLB misses of every assignment of page sizes, core by core.

use fxscope_aarch64::Segment;
use fxscope_linux::Process;
use fxscope_machine::Spec;
use fxscope_pages::{Access, Analysis, Design, Error, Question, SEGMENTS};
use fxscope_sim::{BlockObserver, Ran};

use super::sites::Site;
use super::{Assignment, Costs, Group};

/// Code, read-only data, mapped files and memory shared with other processes: their pages stay as they are.
const TEXT: u8 = 0;
/// Mappings of the first calls that map large blocks have numbers of their own.
const FIRST_SITE: u8 = Group::Mmap as u8;
/// All other mappings.
const OTHER: u8 = SEGMENTS as u8 - 1;
/// Bits of a program's addresses; the number of its process stands above them.
const ADDRESS_BITS: u32 = 48;
/// Most lanes of the analysis of a core. The pages of few programs differ in so many ways.
const LANES: usize = 4096;
/// The number and the flag of Linux for arm64 (`asm-generic/unistd.h`, `mman-common.h`).
const MMAP: u64 = 222;
const MREMAP: u64 = 216;
const MAP_ANONYMOUS: u64 = 0x20;

/// Sizes of the pages that a program starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Bytes of a page of [`TEXT`].
    text: u64,
    groups: [u64; Group::ALL.len()],
}

impl Start {
    /// Those of a program whose segments have pages of the sizes that `bytes` says.
    ///
    /// # Errors
    /// When segments that are taken together have different sizes: which.
    pub fn new(bytes: impl Fn(Segment) -> u64) -> Result<Start, String> {
        let one = |segments: &[Segment]| {
            let size = bytes(segments[0]);
            let other = segments.iter().find(|&&segment| bytes(segment) != size);
            other.map_or(Ok(size), |other| {
                let (first, other) = (segments[0].name(), other.name());
                Err(format!(
                    "{first} and {other} have pages of different sizes, and they are taken together here; give them one size with \
                     --pages {first}=SIZE,{other}=SIZE"
                ))
            })
        };
        let mut groups = [0; Group::ALL.len()];
        for (size, group) in groups.iter_mut().zip(Group::ALL) {
            *size = one(group.segments())?;
        }
        Ok(Start { text: one(&[Segment::Text, Segment::Shared])?, groups })
    }

    /// The sizes of the groups, in their order.
    #[must_use]
    pub fn groups(&self) -> &[u64] {
        &self.groups
    }

    /// All sizes, ascending, with those that are asked about.
    fn sizes(&self, asked: &[u64]) -> Vec<u64> {
        let mut sizes: Vec<u64> = asked.iter().chain(&self.groups).chain([&self.text]).copied().collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// A part of an address space.
#[derive(Clone, Copy)]
struct Mapped {
    start: u64,
    end: u64,
    number: u8,
}

const NOWHERE: Mapped = Mapped { start: 0, end: 0, number: TEXT };

/// The address space of a process.
struct Space {
    pid: u32,
    /// When `ranges` were read.
    generation: u64,
    /// By ascending address.
    ranges: Vec<Mapped>,
}

/// A mapping that a thread is about to ask for.
struct Pending {
    pid: u32,
    tid: u32,
    site: Site,
}

/// Follows a run.
pub struct Observer {
    design: Design,
    question: Question,
    text: usize,
    base: Assignment,
    /// Bytes from which on a mapping is large.
    large: u64,
    spaces: Vec<Space>,
    /// The place of the last process among them, and the range that it accessed last.
    here: usize,
    last: Mapped,
    pending: Vec<Pending>,
    sites: Vec<Site>,
    cores: Vec<(u32, Analysis)>,
    /// The addresses of one block.
    addresses: Vec<u64>,
}

impl Observer {
    /// For a program that starts with these pages, and page sizes to ask about besides.
    ///
    /// # Errors
    /// When the machine's TLBs or the sizes are outside what can be analysed.
    pub fn new(spec: &Spec, start: &Start, asked: &[u64]) -> Result<Observer, Error> {
        let sizes = start.sizes(asked);
        let place = |bytes: u64| sizes.iter().position(|&size| size == bytes).unwrap_or(0);
        let (text, base) = (place(start.text), Assignment(start.groups.map(place)));
        let Costs { hit, walk } = Costs::of(spec);
        let question = Question {
            segments: SEGMENTS,
            lanes: LANES,
            keep: vec![by_number(text, &base)],
            costs: [hit, walk],
            sizes,
        };
        let design = Design::of(&spec.tlb);
        // Tells now what would be wrong when the first core runs.
        Analysis::new(&design, &question)?;
        Ok(Observer {
            design,
            question,
            text,
            base,
            large: spec.pages.large,
            spaces: Vec::new(),
            here: 0,
            last: NOWHERE,
            pending: Vec::new(),
            sites: Vec::new(),
            cores: Vec::new(),
            addresses: Vec::new(),
        })
    }

    /// What has been found out.
    #[must_use]
    pub fn finish(self) -> Observation {
        let Observer { question, text, base, sites, cores, .. } = self;
        Observation {
            sizes: question.sizes,
            text,
            base,
            sites,
            cores: cores.into_iter().map(|(_, core)| core).collect(),
        }
    }

    /// Learns of the address space of the process in place.
    fn follow(&mut self, process: &Process) {
        let (pid, generation) = (process.pid(), process.memory().generation());
        if self.spaces.get(self.here).is_some_and(|space| space.pid == pid && space.generation == generation) {
            return;
        }
        self.last = NOWHERE;
        self.here = self.spaces.iter().position(|space| space.pid == pid).unwrap_or_else(|| {
            self.spaces.push(Space { pid, generation: u64::MAX, ranges: Vec::new() });
            self.spaces.len() - 1
        });
        if self.spaces[self.here].generation != generation {
            self.read_ranges(process);
        }
    }

    #[cold]
    fn read_ranges(&mut self, process: &Process) {
        let (pid, tid) = (process.pid(), process.thread().tid);
        let mine = self.pending.iter().position(|pending| pending.pid == pid && pending.tid == tid);
        let site = mine.map(|i| self.pending.swap_remove(i).site);
        let before = std::mem::take(&mut self.spaces[self.here].ranges);
        let (mut ranges, mut number) = (Vec::new(), None);
        for region in process.memory().regions() {
            if region.segment != Segment::Mmap {
                ranges.push(Mapped { start: region.start, end: region.end, number: fixed_number(region.segment) });
                continue;
            }
            let first = before.partition_point(|known| known.end <= region.start);
            let mut at = region.start;
            for known in before[first..].iter().take_while(|known| known.start < region.end) {
                if known.number < FIRST_SITE {
                    continue;
                }
                if at < known.start {
                    let new = *number.get_or_insert_with(|| self.number_of(site.clone(), known.start - at));
                    ranges.push(Mapped { start: at, end: known.start, number: new });
                }
                let (start, end) = (known.start.max(region.start), known.end.min(region.end));
                ranges.push(Mapped { start, end, ..*known });
                at = end;
            }
            if at < region.end {
                let new = *number.get_or_insert_with(|| self.number_of(site.clone(), region.end - at));
                ranges.push(Mapped { start: at, end: region.end, number: new });
            }
        }
        let space = &mut self.spaces[self.here];
        (space.ranges, space.generation) = (ranges, process.memory().generation());
    }

    /// The number of a new mapping of so many bytes.
    fn number_of(&mut self, site: Option<Site>, bytes: u64) -> u8 {
        let Some(site) = site.filter(|_| bytes >= self.large) else { return OTHER };
        let known = self.sites.iter().position(|known| known.is_at(&site)).unwrap_or_else(|| {
            self.sites.push(site);
            self.sites.len() - 1
        });
        self.sites[known].bytes += bytes;
        (usize::from(FIRST_SITE) + known).min(usize::from(OTHER)) as u8
    }

    /// The number of the range that an address lies in.
    #[inline]
    fn number_at(&mut self, address: u64) -> u8 {
        if !(self.last.start <= address && address < self.last.end) {
            let ranges = &self.spaces[self.here].ranges;
            let found = ranges.get(ranges.partition_point(|range| range.end <= address));
            self.last = found.copied().filter(|range| range.start <= address).unwrap_or(NOWHERE);
        }
        self.last.number
    }

    /// The place of the core with a number.
    fn core(&mut self, cpu: u32) -> usize {
        self.cores.iter().position(|&(number, _)| number == cpu).unwrap_or_else(|| {
            let analysis = Analysis::new(&self.design, &self.question).expect("checked at the beginning");
            self.cores.push((cpu, analysis));
            self.cores.len() - 1
        })
    }
}

impl BlockObserver for Observer {
    /// They come to the pages of the round before.
    const SKIPS_ROUNDS: bool = true;

    fn ran(&mut self, ran: &mut Ran<'_>) {
        let Ran { process, pipeline, block, executed } = ran;
        self.follow(process);
        let mut addresses = std::mem::take(&mut self.addresses);
        addresses.clear();
        pipeline.data_lookups(block, *executed, process.cpu().stream(), &mut addresses);
        if !addresses.is_empty() {
            let core = self.core(process.cpu_number());
            let space = (self.here as u64) << ADDRESS_BITS;
            for &address in &addresses {
                let segment = self.number_at(address);
                self.cores[core].1.access(Access { addr: address | space, segment });
            }
        }
        self.addresses = addresses;
        if process.has_trap() {
            self.note_call(process);
        }
    }
}

impl Observer {
    /// The thread in place is about to call the kernel: if it asks for memory, notes who does.
    #[cold]
    fn note_call(&mut self, process: &mut Process) {
        let (pid, tid, cpu) = (process.pid(), process.thread().tid, process.cpu());
        self.pending.retain(|pending| (pending.pid, pending.tid) != (pid, tid));
        let maps = cpu.x(8) == MMAP && cpu.x(3) & MAP_ANONYMOUS != 0 && cpu.x(1) >= self.large;
        let grows = cpu.x(8) == MREMAP && cpu.x(2) >= self.large;
        if maps || grows {
            self.pending.push(Pending { pid, tid, site: Site::calling(process) });
        }
    }
}

/// The number of a segment that is one as a whole.
fn fixed_number(segment: Segment) -> u8 {
    let group = Group::ALL.into_iter().find(|group| group.segments().contains(&segment));
    group.map_or(TEXT, |group| group as u8)
}

/// The sizes by the analysis's numbers of segments.
fn by_number(text: usize, assignment: &Assignment) -> Vec<usize> {
    let of = |number: usize| match number {
        0 => text,
        n => assignment.0[(n - 1).min(Group::ALL.len() - 1)],
    };
    (0..SEGMENTS).map(of).collect()
}

/// Misses under one assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// Of the first level, all cores together.
    pub first: u64,
    /// Table walks, all cores together.
    pub walks: u64,
    /// Cycles that they would take one after the other on the core that has most of them.
    pub cycles: u64,
}

/// A segment's misses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentMisses {
    /// What it is.
    pub name: String,
    /// Misses of the first level, and table walks.
    pub first: u64,
    /// See `first`.
    pub walks: u64,
}

/// What a run has told.
pub struct Observation {
    sizes: Vec<u64>,
    text: usize,
    base: Assignment,
    /// Calls that have mapped large blocks, in the order of their first ones.
    pub sites: Vec<Site>,
    cores: Vec<Analysis>,
}

impl Observation {
    /// Page sizes, ascending.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// The assignment that the program ran with.
    #[must_use]
    pub fn base(&self) -> &Assignment {
        &self.base
    }

    /// The assignment with these sizes, in the order of the groups; `None` when one was not asked about.
    #[must_use]
    pub fn assignment(&self, bytes: &[u64]) -> Option<Assignment> {
        let mut places = [0; Group::ALL.len()];
        for (place, bytes) in places.iter_mut().zip(bytes) {
            *place = self.sizes.iter().position(|size| size == bytes)?;
        }
        Some(Assignment(places))
    }

    /// The size that a group has in an assignment, bytes.
    #[must_use]
    pub fn bytes(&self, assignment: &Assignment, group: Group) -> u64 {
        self.sizes[assignment.0[group as usize - 1]]
    }

    /// Misses under an assignment; `None` when they are not all known.
    #[must_use]
    pub fn misses(&self, assignment: &Assignment, costs: &Costs) -> Option<Misses> {
        let mut all = Misses::default();
        for core in &self.cores {
            let counts = core.counts(&by_number(self.text, assignment)).ok().filter(|counts| counts.exact)?;
            let (first, walks) = (counts.first.iter().sum::<u64>(), counts.walks.iter().sum::<u64>());
            all.first += first;
            all.walks += walks;
            all.cycles = all.cycles.max(costs.cycles(first, walks));
        }
        Some(all)
    }

    /// Misses of each segment under an assignment, all cores together; segments without any are left out.
    #[must_use]
    pub fn segments(&self, assignment: &Assignment) -> Vec<SegmentMisses> {
        let mut sums = [(0, 0); SEGMENTS];
        for core in &self.cores {
            let Ok(counts) = core.counts(&by_number(self.text, assignment)) else { continue };
            for (i, sum) in sums.iter_mut().enumerate() {
                sum.0 += counts.first[i];
                sum.1 += counts.walks[i];
            }
        }
        let named = sums.into_iter().enumerate().filter(|(_, sum)| *sum != (0, 0));
        named.map(|(i, (first, walks))| SegmentMisses { name: self.name(i as u8), first, walks }).collect()
    }

    fn name(&self, number: u8) -> String {
        let site = number.checked_sub(FIRST_SITE).and_then(|site| self.sites.get(usize::from(site)));
        match (number, site) {
            (TEXT, _) => "text, files".to_owned(),
            (OTHER, _) => "other mmap".to_owned(),
            (_, Some(site)) => format!("mmap by {}", site.describe()),
            (number, None) => Group::ALL[usize::from(number) - 1].name().to_owned(),
        }
    }
}
