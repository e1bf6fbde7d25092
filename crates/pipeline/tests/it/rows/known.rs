//! Rows that differ from what they document, and why.
//!
//! A reason that begins with `limits#` is a limit of the model, a row of `docs/model/limits.md`. The others follow from rules of the
//! manual that the expectation, a bound, leaves out.

/// What the copies of a row have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// Each reads what the one before wrote.
    Chained,
    /// Each uses the base register that the one before moved on.
    Updated,
    /// Nothing.
    Independent,
}

/// A loop, the reason why rows differ in it, and those rows: all of one notation (pipes and latency cells) together,
/// with their number.
pub type Known = (Loop, &'static str, &'static [(&'static str, usize)]);

pub const KNOWN: &[Known] = &[
    (
        Loop::Chained,
        "limits#prediction: three temporary operand registers, each taken until the operation starts, are two cycles for each (5.4)",
        &[("EAGB: 1", 2)],
    ),
    (
        Loop::Independent,
        "limits#prediction: three temporary operand registers, each taken until the operation starts, are two cycles for each (5.4)",
        &[("EAGB: 1", 2), ("EAGB: load_integer", 6), ("EAGB: load_short", 3)],
    ),
    (
        Loop::Independent,
        "results that would leave a pipe together come later (manual 2.9): the steps of one copy, which wait for each \
         other, take longer beside those of other copies",
        &[
            ("FL* / (FLA / FL*) x 5: 4 / ([1]6 / [1,2]4) x 5", 4),
            ("FL* / (FLA / FL*) x 3 / FL* / FL* / FL*: 4 / ([1]6 / [1,2]4) x 3 / [1]4 / [1]4 / [1]4", 7),
            ("FL* / (FLA / FL*) x 3 / FL* / FL*: 4 / ([1]6 / [1,2]4) x 3 / [1]4 / [1]4", 7),
            ("FL* / FL* / (FL* / FLA) x 3 / FL* / FL* / FL*: 4 / [1]4 / ([1,2]4 / [1]6) x 3 / [1,2]4 / [1]4 / [1]4", 2),
            ("FL* / FLA / (FL* / FLA) x 14 / FL*: 9 / 6 / ([1,2]9 / [2]6) x 14 / [1,2]9", 2),
            ("FL* / FLA / (FL* / FLA) x 30 / FL*: 9 / 6 / ([1,2]9 / [2]6) x 30 / [1,2]9", 1),
        ],
    ),
    (
        Loop::Independent,
        "DC ZVA keeps its entry of the write buffer until L2 has zeroed the line",
        &[("EAGA, EXA: NA, NA", 3)],
    ),
    (
        Loop::Independent,
        "limits#store-pairs: pairing of store accesses",
        &[
            ("(EXA + NULL + FLA + Pipe((EAGA & EAGB), 2) / EXA + NULL + FLA) x 2: (1+3+4+Pipe(NA, 2) / 1+3+NA) x 2", 4),
            (
                "(EXA + NULL + FLA + Pipe((EAGA & EAGB), 2) / EXA + NULL + FLA) x 4: (1+3+4+Pipe(NA, 2) / 1+3+NA ) x 4",
                2,
            ),
            ("(EXA + NULL + FLA + Pipe((EAGA & EAGB), 2) / EXA + NULL + FLA) x 4: (1+3+4+Pipe(NA, 2) / 1+3+NA) x 4", 1),
            ("(FLA + FLA + Pipe((EAGA & EAGB), 2) / FLA) x 4: (4+Pipe(NA, 2) / NA ) x 4", 1),
            ("(FLA + FLA + Pipe((EAGA & EAGB), 2) / FLA) x 4: (4+Pipe(NA, 2) / NA) x 4", 1),
            ("(FLA + Pipe((EAGA & EAGB), 2) / FLA) x 2: (4+Pipe(NA, 2) / NA) x 2", 4),
            ("(FLA + Pipe((EAGA & EAGB), 2) / FLA) x 4: (4+Pipe(NA, 2) / NA ) x 4", 1),
            (
                "EAG* / ( (Pipe(EAGA, 4) | Pipe(EAGB, 4)), Pipe(FLA, 4) ) x 3: 1 / [1/2/3]( Pipe(NA, 4), Pipe(NA, 4)) x 3",
                2,
            ),
            (
                "EAG* / ( (Pipe(EAGA, 4) | Pipe(EAGB, 4)), Pipe(FLA, 4) ) x 3: 1 / [1/2/3](Pipe(NA, 4), Pipe(NA, 4)) x 3",
                6,
            ),
            (
                "EAG* / ( (Pipe(EAGA, 4) | Pipe(EAGB, 4)), Pipe(FLA, 4) ) x 4: 1 / [1/2/3/4]( Pipe(NA, 4), Pipe(NA, 4)) x 4",
                2,
            ),
            (
                "EAG* / ( (Pipe(EAGA, 4) | Pipe(EAGB, 4)), Pipe(FLA, 4) ) x 4: 1 / [1/2/3/4](Pipe(NA, 4), Pipe(NA, 4)) x 4",
                2,
            ),
            ("(EAG*, FLA) x 2 / EAG*: (NA, NA) x 2 / 1", 3),
            ("(EAG*, FLA) x 3 / EAG*: (NA, NA) x 3 / 1", 3),
            ("(EAG*, FLA) x 3: (NA, NA) x 3", 3),
            ("EAG* / (EAG*, FLA) x 2: 1 / [1/2](NA,NA) x 2", 3),
            ("EAG* / (EAG*, FLA) x 3: 1 / [1/2/3](NA,NA) x 3", 3),
            ("EAG* / (EAG*, FLA) x 4: 1 / [1/2/3/4](NA,NA) x 4", 3),
            ("EAG*, FLA / EAG*, FLA / EAG*, FLA / EAG*, FLA: NA,NA / NA,NA / NA,NA / NA,NA", 3),
            ("EAG*, FLA / EAG*, FLA / EAG*, FLA: NA,NA / NA,NA / NA,NA", 3),
            ("EAG*, FLA / EAG*, FLA: NA,NA / NA,NA", 3),
        ],
    ),
    (
        Loop::Independent,
        "a transfer to a general register holds one of 24 store ports until it has committed (2.8)",
        &[
            ("FLA + NULL + EAG*: 6 + 1 + 18", 1),
            ("FLA + NULL + EAG*: 6+1+18", 3),
            ("FLA + NULL ; EAG*: 6+1 ; 18", 1),
            ("FLA + NULL ; EAG*: 9+1 ; 15", 12),
            ("FLA ; EAG*: 1 ; 13", 1),
        ],
    ),
    (
        Loop::Independent,
        "updates stand in odd slots, and those go to the station with fewer free entries (table 5-4): that of the data",
        &[("EAG*, EXA / EX*| EAG*: NA, NA / 1", 6)],
    ),
    (
        Loop::Independent,
        "the operation behind a blocking one is older than the next of them and takes FLA in its first cycle (6.1)",
        &[
            ("FLB / FLA / FLA / FL*: 6 / 6 / [1,2]8 / [1]4", 8),
            ("FLB / FLB / FLA / FL*: 6 / 6 / [1,2]8 / [1]4", 4),
            ("FLB / FLB / FLA / FLA: 6 / 6 / [1,2]8 / [1]4", 4),
        ],
    ),
    (
        Loop::Independent,
        "an operation for either pipe goes where its slot says until that station has no room for a cycle's writes (5.2), so that \
         pipes fill unevenly at times",
        &[
            ("FL* / FLA: 9 / [1]6", 2),
            ("FLA / FLA / FL*: 6 / 6 / [1,2]9", 4),
            ("FLB / FL*: 6 / [1]4", 3),
            ("FLB / FL*: 6 / [1]9", 1),
        ],
    ),
];
