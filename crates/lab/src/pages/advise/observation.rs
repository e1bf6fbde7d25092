//! What an observed run gives: TLB misses and the kernel's work on pages under every assignment of pages.

use fxscope_linux::pages::MappingPages;
use fxscope_machine::spec::PageCosts;
use fxscope_tlbsweep::{Counts, SEGMENTS, SweepResults};

use super::Costs;
use super::observe::Call;
use super::parts::{self, Assignment, CALLS, Group, Kinds, NUMBERS, PARTS, SHARED};
use super::work::{self, Allocation, Mapped};

/// Misses under one assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misses {
    /// First-level misses for data, all cores together.
    pub first: u64,
    /// Table walks for data, all cores together.
    pub walks: u64,
    /// First-level misses for instructions, and table walks for them.
    pub code: [u64; 2],
    /// Cycles of all misses in sequence, on the core with most of them.
    pub cycles: u64,
    /// Those of them that are first touches of a page, which a longer run does not repeat.
    pub first_touches: u64,
}

/// Misses of accesses to a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartMisses {
    /// Name of the part.
    pub name: String,
    /// First-level misses.
    pub first: u64,
    /// Table walks.
    pub walks: u64,
}

/// Misses of a core: of data, and of instructions.
pub(super) struct Missed {
    pub data: SweepResults,
    pub code: SweepResults,
    /// What was counted of both before the part of the run that is looked at.
    pub before: Option<[SweepResults; 2]>,
    /// Touched pages of data and of instructions: by number, with each size.
    pub touched: [Vec<Vec<u64>>; 2],
}

/// Results of an observed run.
pub struct Observation {
    pub(super) sizes: Vec<u64>,
    pub(super) kinds: Kinds,
    pub(super) base: Assignment,
    pub(super) shared: usize,
    /// Calls that mapped large blocks.
    pub calls: Vec<Call>,
    pub(super) others: u64,
    pub(super) huge: [bool; PARTS],
    pub(super) cores: Vec<Missed>,
    /// Pages that any core touched: by number, with each size.
    pub(super) touched: Vec<Vec<u64>>,
    pub(super) work: Vec<Mapped>,
}

impl Observation {
    /// Returns the kinds of pages.
    #[must_use]
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// Returns the assignment that the program ran with.
    #[must_use]
    pub fn base(&self) -> &Assignment {
        &self.base
    }

    /// Returns whether a part has an aligned range that holds a transparent huge page.
    #[must_use]
    pub fn holds_huge(&self, part: usize) -> bool {
        self.huge[part]
    }

    /// Returns the call of a part.
    #[must_use]
    pub fn call(&self, part: usize) -> Option<&Call> {
        self.calls.iter().find(|call| call.part == part && part != Group::Mmap.part())
    }

    /// Returns the largest total size of mappings: of the part's call, or of all without a part of their own.
    #[must_use]
    pub fn mapped(&self, part: usize) -> u64 {
        if part == Group::Mmap.part() {
            let calls = self.calls.iter().filter(|call| call.part == part).map(|call| call.bytes);
            return calls.sum::<u64>() + self.others;
        }
        self.call(part).map_or(0, |call| call.bytes)
    }

    /// Returns the calls that mapped most, if they are not those with parts of their own.
    #[must_use]
    pub fn larger_calls(&self) -> Option<Vec<Call>> {
        let mut own: Vec<&Call> = self.calls.iter().filter(|call| call.site.is_own).collect();
        own.sort_by_key(|call| std::cmp::Reverse(call.bytes));
        let largest = &own[..own.len().min(CALLS)];
        let all_have_parts = largest.iter().all(|call| call.part != Group::Mmap.part());
        (!all_have_parts).then(|| largest.iter().map(|&call| Call { bytes: 0, ..call.clone() }).collect())
    }

    /// Returns the assignment with these pages, in the order of parts; `None` if some were not tried.
    #[must_use]
    pub fn assignment(&self, pages: &[MappingPages]) -> Option<Assignment> {
        let mut places = [0; PARTS];
        for (place, &pages) in places.iter_mut().zip(pages) {
            *place = self.kinds.place(pages)?;
        }
        Some(Assignment(places))
    }

    /// Returns the pages of a part in an assignment.
    #[must_use]
    pub fn pages(&self, assignment: &Assignment, part: usize) -> MappingPages {
        self.kinds.at(assignment.0[part])
    }

    fn counts(&self, assignment: &Assignment) -> impl Iterator<Item = Option<[Counts; 2]>> + '_ {
        let numbers = by_number(assignment, &self.kinds, &self.sizes, self.shared);
        let exact = move |results: &SweepResults| results.counts(&numbers).ok().filter(|counts| counts.exact);
        self.cores.iter().map(move |core| {
            let all = [exact(&core.data)?, exact(&core.code)?];
            let Some([data, code]) = &core.before else { return Some(all) };
            let before = [exact(data)?, exact(code)?];
            Some(std::array::from_fn(|kind| less(all[kind], &before[kind])))
        })
    }

    /// Returns the misses under an assignment; `None` if they are not all known.
    #[must_use]
    pub fn misses(&self, assignment: &Assignment, costs: &Costs) -> Option<Misses> {
        let sums = |counts: &Counts| [counts.first.iter().sum::<u64>(), counts.walks.iter().sum::<u64>()];
        let numbers = by_number(assignment, &self.kinds, &self.sizes, self.shared);
        let mut all = Misses::default();
        for (counts, core) in self.counts(assignment).zip(&self.cores) {
            let [data, code] = counts?.each_ref().map(sums);
            all.first += data[0];
            all.walks += data[1];
            all.code = [all.code[0] + code[0], all.code[1] + code[1]];
            let cycles = costs.cycles(data[0] + code[0], data[1] + code[1]);
            if cycles > all.cycles {
                let touched: u64 = core.touched.iter().map(|touched| pages(touched, &numbers)).sum();
                (all.cycles, all.first_touches) = (cycles, costs.cycles(touched, touched).min(cycles));
            }
        }
        Some(all)
    }

    /// Returns the seconds that the kernel takes for the pages of an assignment; `when` says when the pages of a group are allocated.
    pub(super) fn kernel_seconds(
        &self,
        assignment: &Assignment,
        costs: &PageCosts,
        when: impl Fn(Group) -> Allocation,
    ) -> f64 {
        let numbers = by_number(assignment, &self.kinds, &self.sizes, self.shared);
        let of_number = |number: usize| -> f64 {
            let (part, place) = (parts::part(number), numbers[number]);
            if part == SHARED || when(Group::of(part)) != Allocation::Touch {
                return 0.0;
            }
            // The kernel has written the first page of the stack before the program starts.
            let before = u64::from(part == Group::Stacks.part());
            let pages = self.touched[number][place].saturating_sub(before);
            work::touching(pages, self.sizes[place], costs) / self.cores.len().max(1) as f64
        };
        let of_part = |part: usize| match when(Group::of(part)) {
            Allocation::Before => 0.0,
            Allocation::Mapping => self.work[part].seconds(numbers[part], costs),
            Allocation::Touch => self.work[part].freed(numbers[part], costs),
        };
        (0..NUMBERS).map(of_number).sum::<f64>() + (0..PARTS).map(of_part).sum::<f64>()
    }

    /// Returns the misses of accesses to each part under an assignment, all cores together, without parts that have none.
    #[must_use]
    pub fn by_part(&self, assignment: &Assignment) -> Vec<PartMisses> {
        let mut data = [(0, 0); PARTS + 1];
        let mut code = (0, 0);
        for [of_data, of_code] in self.counts(assignment).flatten() {
            for number in 0..NUMBERS {
                let sum = &mut data[parts::part(number)];
                *sum = (sum.0 + of_data.first[number], sum.1 + of_data.walks[number]);
                code = (code.0 + of_code.first[number], code.1 + of_code.walks[number]);
            }
        }
        let data = data.into_iter().enumerate().map(|(part, sum)| (self.name(part), sum));
        let all = std::iter::once(("instructions".to_owned(), code)).chain(data);
        let missing = all.filter(|(_, sum)| *sum != (0, 0));
        missing.map(|(name, (first, walks))| PartMisses { name, first, walks }).collect()
    }

    /// Returns the name of a part.
    #[must_use]
    pub fn name(&self, part: usize) -> String {
        match (part, self.call(part)) {
            (SHARED, _) => "shared memory".to_owned(),
            (_, Some(call)) => format!("mmap by {}", call.describe()),
            (0, _) => "text, files".to_owned(),
            _ if Group::of(part) == Group::Mmap => "other mmap".to_owned(),
            _ => Group::of(part).name().to_owned(),
        }
    }
}

/// Returns what was counted after `before`.
fn less(all: Counts, before: &Counts) -> Counts {
    let less = |all: [u64; SEGMENTS], before: &[u64; SEGMENTS]| std::array::from_fn(|i| all[i] - before[i]);
    Counts {
        first: less(all.first, &before.first),
        second: less(all.second, &before.second),
        walks: less(all.walks, &before.walks),
        exact: all.exact,
    }
}

/// Returns the number of touched pages with the sizes of an assignment.
fn pages(touched: &[Vec<u64>], numbers: &[usize]) -> u64 {
    touched.iter().zip(numbers).map(|(counts, &place)| counts[place]).sum()
}

/// Returns the sizes by the analysis's numbers.
pub(super) fn by_number(assignment: &Assignment, kinds: &Kinds, sizes: &[u64], shared: usize) -> Vec<usize> {
    let place = |bytes: u64| sizes.iter().position(|&size| size == bytes).unwrap_or(0);
    let of = |number: usize| match number {
        SHARED => shared,
        _ => match kinds.at(assignment.0[parts::part(number)]) {
            MappingPages::Size(bytes) => place(bytes),
            MappingPages::Transparent => place(kinds.transparent[usize::from(number > SHARED)]),
        },
    };
    (0..NUMBERS).map(of).collect()
}
