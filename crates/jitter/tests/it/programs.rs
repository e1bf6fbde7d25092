//! Replayed programs: arithmetic by hand, a replay call by call of every rank on every node, and the text form.

use std::collections::{HashMap, VecDeque};

use fxscope_jitter::model::{self, Model};
use fxscope_jitter::network::{Network, grid};
use fxscope_jitter::program::{Call, Collective, Program, Rank, Schedule, Step};
use fxscope_jitter::scale::{Outcome, Replay, replay, replay_affordable};
use proptest::prelude::*;

use crate::brute_force::{Taken, around, end, mixed, nodes_taken};

/// Two ranks that exchange messages and then reduce.
const TWO: &str = "fxscope program,1\nthreads,2\nrank,compute_ns,call,bytes,partner,copy_ns\n\
    0,100,send,64,1,5\n0,50,recv,,1,7\n0,10,allreduce,8,,20\n0,7,end,,,\n\
    1,300,recv,,0,9\n1,1,send,32,0,2\n1,10,allreduce,8,,30\n1,0,end,,,\n";

fn program(text: &str) -> Program {
    Program::parse(text).expect("a program")
}

fn of<'a>(program: &Program, schedule: &'a Schedule, network: &Network, nodes: u32, repetitions: u64) -> Replay<'a> {
    let (costs, work) = (schedule.costs(network, nodes), program.compute());
    Replay { schedule, costs, nodes, cores: program.threads, repetitions, work, seed: 5 }
}

fn run(program: &Program, model: &Model, network: &str, nodes: u32, repetitions: u64) -> Outcome {
    let (schedule, network) = (Schedule::new(program).expect("in order"), Network::load(network).expect("built in"));
    replay(model, &of(program, &schedule, &network, nodes, repetitions)).expect("it runs")
}

fn silent() -> Model {
    model::load("silent").expect("built in")
}

#[test]
fn two_ranks_take_the_time_of_their_longest_chain_of_calls() {
    // Rank 0 sends at 100, and receives from 155 on. Rank 1 receives at 300, sends at 310, reduces from 322 on. Rank 0
    // has that message at 310, and reduces from 327 on. Both continue at 327: rank 0 ends at 354, rank 1 at 357.
    let two = program(TWO);
    let outcome = run(&two, &silent(), "ideal", 1, 1);
    assert_eq!((outcome.time, outcome.quiet), (357, 357));
    let work = (100.0 + 50.0 + 10.0 + 7.0 + 300.0 + 1.0 + 10.0) / 2.0;
    assert!((outcome.efficiency() - work / 357.0).abs() < 1e-12, "{}", outcome.efficiency());
    for (network, nodes, repetitions) in [("ideal", 64, 3), ("ideal", 100_000, 1)] {
        let more = run(&two, &silent(), network, nodes, repetitions);
        assert_eq!((more.time, more.quiet), (357 * repetitions, 357 * repetitions), "{nodes} nodes");
    }
    // A synchronous send ends when its receiver has begun: rank 0 continues at 300, and receives from 355 on.
    let outcome = run(&program(&TWO.replace("0,100,send", "0,100,ssend")), &silent(), "ideal", 1, 1);
    assert_eq!(outcome.time, 355 + 7 + 10 + 30);
}

#[test]
fn each_exchange_and_each_collective_costs_what_the_network_says() {
    let (two, tofud) = (program(TWO), Network::load("tofud").expect("built in"));
    for nodes in [1, 2, 384, 5000] {
        let more = |cost: &dyn Fn(u32) -> f64| (cost(nodes) - cost(1)).round() as u64;
        let first = more(&|n| tofud.halo(n, 64_u64.div_ceil(6)));
        let second = more(&|n| tofud.halo(n, 32_u64.div_ceil(6)));
        let reduction = more(&|n| tofud.allreduce(n, 8));
        // Rank 1 may have computed until the message is there; then it answers.
        let answer = 300.max(100 + first) + 10;
        let expected = (answer + 12).max(answer + second + 17) + reduction + 30;
        let outcome = run(&two, &silent(), "tofud", nodes, 1);
        assert_eq!((outcome.time, outcome.quiet), (expected, expected), "{nodes} nodes");
    }
}

#[test]
fn without_messages_the_slowest_rank_of_each_section_counts() {
    let rank = |computes: &[u64]| {
        let step =
            |&compute| Step { compute, call: Call::Collective { kind: Collective::Barrier, bytes: 0 }, copy: 10 };
        Rank { steps: computes.iter().map(step).collect(), rest: 0 }
    };
    let ranks = vec![rank(&[500, 20, 900]), rank(&[100, 800, 1000]), rank(&[400, 700, 10])];
    let program = Program { threads: 4, ranks };
    let outcome = run(&program, &silent(), "ideal", 17, 40);
    let longest = 500 + (800 + 10) + (1000 + 10) + 10;
    assert_eq!(outcome.time, 40 * longest);
    assert!((outcome.efficiency() - (4430.0 / 3.0) / longest as f64).abs() < 1e-12);
    assert_eq!(outcome.confidence.map(|bounds| (bounds.low, bounds.high)), Some((1.0, 1.0)));
}

/// A message on its way.
struct Sent {
    /// When each node sends it.
    times: Vec<u64>,
    bytes: u64,
    /// Whether its sender waits for the receiver.
    waits: bool,
}

/// A replay that looks at each core of each rank of each node, and takes messages from queues.
struct ByHand<'a> {
    program: &'a Program,
    network: &'a Network,
    nodes: usize,
    taken: Vec<Vec<Taken>>,
    clocks: Vec<Vec<u64>>,
    /// Work of each rank until its next call, which includes the copy of the last one.
    works: Vec<u64>,
    at: Vec<usize>,
    reached: Vec<bool>,
    sent: HashMap<(usize, usize), VecDeque<Sent>>,
}

impl ByHand<'_> {
    fn work(&mut self, rank: usize) {
        let work = std::mem::take(&mut self.works[rank]);
        let threads = self.program.threads as usize;
        for node in (0..self.nodes).filter(|_| work > 0) {
            let now = self.clocks[node][rank];
            let cores = &self.taken[node][rank * threads..][..threads];
            self.clocks[node][rank] = cores.iter().map(|core| end(core, now, work)).max().expect("cores");
        }
    }

    fn step(&self, rank: usize) -> Option<Step> {
        self.program.ranks[rank].steps.get(self.at[rank]).copied()
    }

    fn pass(&mut self, rank: usize, copy: u64) {
        (self.works[rank], self.reached[rank]) = (copy, false);
        self.at[rank] += 1;
    }

    /// Runs all ranks until they wait.
    fn advance(&mut self) {
        for rank in 0..self.program.ranks.len() {
            while !self.reached[rank] {
                let step = self.step(rank);
                self.works[rank] += step.map_or(self.program.ranks[rank].rest, |step| step.compute);
                self.work(rank);
                self.reached[rank] = true;
                let Some(Step { call: Call::Send { to, bytes } | Call::SynchronousSend { to, bytes }, copy, .. }) =
                    step
                else {
                    break;
                };
                let times = (0..self.nodes).map(|node| self.clocks[node][rank]).collect();
                let plain = matches!(step, Some(Step { call: Call::Send { .. }, .. }));
                self.sent.entry((rank, to as usize)).or_default().push_back(Sent { times, bytes, waits: !plain });
                if plain {
                    self.pass(rank, copy);
                }
            }
        }
    }

    /// Delivers messages to all ranks that wait for one that is there.
    fn deliver(&mut self) -> bool {
        let mut ready = Vec::new();
        for rank in 0..self.program.ranks.len() {
            if let Some(Step { call: Call::Receive { from }, copy, .. }) = self.step(rank) {
                let message = self.sent.get_mut(&(from as usize, rank)).and_then(VecDeque::pop_front);
                ready.extend(message.map(|message| (rank, from as usize, copy, message)));
            }
        }
        let bytes: u64 = ready.iter().map(|(_, _, _, message)| message.bytes).sum();
        let halo = |nodes: usize| self.network.halo(nodes as u32, bytes.div_ceil(6));
        let cost = (halo(self.nodes) - halo(1)).round() as u64;
        let sides = grid(self.nodes as u32).map(|side| side as usize);
        let before = self.clocks.clone();
        for (rank, from, copy, Sent { times, waits, .. }) in &ready {
            for (node, (clocks, before)) in self.clocks.iter_mut().zip(&before).enumerate() {
                let there = around(node, sides).into_iter().map(|other| times[other]).max().expect("itself") + cost;
                clocks[*rank] = there.max(before[*rank]);
                if *waits {
                    clocks[*from] = before[*from].max(before[*rank]);
                }
            }
            self.pass(*rank, *copy);
            if *waits {
                let copy = self.step(*from).expect("its send").copy;
                self.pass(*from, copy);
            }
        }
        !ready.is_empty()
    }

    /// Ends the collective that all have reached; returns whether it is the end.
    fn gather(&mut self) -> bool {
        let steps: Vec<Option<Step>> = (0..self.at.len()).map(|rank| self.step(rank)).collect();
        let bytes = steps.iter().flatten().map(|step| match step.call {
            Call::Collective { bytes, .. } => bytes,
            other => panic!("stuck at {other:?}"),
        });
        let cost = match steps[0].map(|step| step.call) {
            Some(Call::Collective { kind, .. }) => {
                let bytes = if kind.adds_up() { bytes.sum() } else { bytes.max().expect("ranks") };
                let of = |nodes: usize| self.network.collective(kind, nodes as u32, bytes);
                (of(self.nodes) - of(1)).round() as u64
            }
            _ => 0,
        };
        let last = self.clocks.iter().flatten().copied().max().expect("ranks") + cost;
        self.clocks.iter_mut().flatten().for_each(|clock| *clock = last);
        for (rank, step) in steps.iter().enumerate() {
            self.pass(rank, step.map_or(0, |step| step.copy));
        }
        steps[0].is_none()
    }
}

fn by_hand(program: &Program, model: &Model, network: &Network, nodes: u32, repetitions: u64, horizon: u64) -> u64 {
    let ranks = program.ranks.len();
    let mut state = ByHand {
        program,
        network,
        nodes: nodes as usize,
        taken: nodes_taken(model, nodes, ranks as u32 * program.threads, 5, horizon),
        clocks: vec![vec![0; ranks]; nodes as usize],
        works: Vec::new(),
        at: Vec::new(),
        reached: Vec::new(),
        sent: HashMap::new(),
    };
    for _ in 0..repetitions {
        (state.works, state.at, state.reached) = (vec![0; ranks], vec![0; ranks], vec![false; ranks]);
        state.sent.clear();
        loop {
            state.advance();
            if !state.deliver() && state.gather() {
                break;
            }
        }
    }
    state.clocks[0][0]
}

/// Part of a random program.
#[derive(Clone, Debug)]
enum Part {
    Message {
        from: usize,
        to: usize,
        bytes: u64,
        synchronous: bool,
    },
    /// A rank receives the oldest message that it has not received yet.
    Take {
        to: usize,
    },
    Collective(Collective, u64),
}

fn part(ranks: usize) -> impl Strategy<Value = Part> {
    let kinds = Collective::NAMES.map(|(_, kind)| kind);
    prop_oneof![
        4 => (0..ranks, 0..ranks, 0u64..100_000, any::<bool>()).prop_map(|(from, to, bytes, synchronous)| {
            Part::Message { from, to, bytes, synchronous: synchronous && from != to }
        }),
        3 => (0..ranks).prop_map(|to| Part::Take { to }),
        1 => (proptest::sample::select(kinds.to_vec()), 0u64..10_000).prop_map(|(kind, bytes)| Part::Collective(kind, bytes)),
    ]
}

/// Builds a program that can end, since the order of its parts is one in which it can run.
fn assemble(ranks: usize, threads: u32, parts: &[Part], times: &[u64]) -> Program {
    let mut program = Program { threads, ranks: vec![Rank::default(); ranks] };
    let mut times = times.iter().copied().cycle();
    let mut add = |program: &mut Program, rank: usize, call: Call| {
        let (compute, copy) = (times.next().expect("endless"), times.next().expect("endless") / 8);
        program.ranks[rank].steps.push(Step { compute, call, copy });
    };
    let mut open: Vec<(usize, usize)> = Vec::new();
    for part in parts {
        match *part {
            Part::Message { from, to, bytes, synchronous: false } => {
                add(&mut program, from, Call::Send { to: to as u32, bytes });
                open.push((from, to));
            }
            Part::Message { from, to, bytes, synchronous: true } => {
                let before = open.iter().filter(|pair| **pair == (from, to)).count();
                open.retain(|pair| *pair != (from, to));
                for _ in 0..before {
                    add(&mut program, to, Call::Receive { from: from as u32 });
                }
                add(&mut program, from, Call::SynchronousSend { to: to as u32, bytes });
                add(&mut program, to, Call::Receive { from: from as u32 });
            }
            Part::Take { to } => {
                if let Some(place) = open.iter().position(|pair| pair.1 == to) {
                    let (from, _) = open.remove(place);
                    add(&mut program, to, Call::Receive { from: from as u32 });
                }
            }
            Part::Collective(kind, bytes) => {
                (0..ranks).for_each(|rank| add(&mut program, rank, Call::Collective { kind, bytes }));
            }
        }
    }
    for (number, rank) in (1..).zip(&mut program.ranks) {
        rank.rest = 1000 * number;
    }
    program
}

fn random_program() -> impl Strategy<Value = Program> {
    (1usize..5, 1u32..3).prop_flat_map(|(ranks, threads)| {
        let parts = proptest::collection::vec(part(ranks), 0..24);
        let time = prop_oneof![1 => Just(0u64), 3 => 0u64..300_000];
        let times = proptest::collection::vec(time, 1..30);
        (parts, times).prop_map(move |(parts, times)| assemble(ranks, threads, &parts, &times))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_program_takes_as_long_as_a_replay_call_by_call(program in random_program(), nodes in 1u32..13) {
        let (model, network) = (mixed(), Network::load("tofud").unwrap());
        let schedule = Schedule::new(&program).unwrap();
        let outcome = replay(&model, &of(&program, &schedule, &network, nodes, 3)).unwrap();
        let expected = by_hand(&program, &model, &network, nodes, 3, outcome.time * 2 + 20_000_000);
        prop_assert_eq!(outcome.time, expected);
        prop_assert_eq!(outcome.phases.iter().sum::<u64>(), outcome.time);
        let lost: f64 = outcome.lost.iter().sum();
        let noise = (outcome.time - outcome.quiet) as f64;
        prop_assert!((lost - noise).abs() <= 1e-9 * noise, "{} of {}", lost, noise);
    }

    #[test]
    fn without_noise_the_time_is_that_of_a_replay_call_by_call(program in random_program(), nodes in 1u32..30) {
        let network = Network::load("infiniband-ddr").unwrap();
        let schedule = Schedule::new(&program).unwrap();
        let outcome = replay(&silent(), &of(&program, &schedule, &network, nodes, 2)).unwrap();
        prop_assert_eq!(outcome.time, by_hand(&program, &silent(), &network, nodes, 2, 0));
        prop_assert_eq!(outcome.time, outcome.quiet);
    }

    #[test]
    fn any_program_survives_its_text_form(program in random_program()) {
        prop_assert_eq!(Program::parse(&program.text()), Ok(program));
    }

    #[test]
    fn damaged_text_is_refused_with_a_place_or_read_as_another_program(
        program in random_program(), at in any::<proptest::sample::Index>(), with in "[ -~\n,0-9]{0,3}"
    ) {
        let mut text = program.text();
        let place = at.index(text.len());
        text.replace_range(place..=place, &with);
        match Program::parse(&text) {
            Ok(other) => prop_assert!(Schedule::new(&other).is_ok()),
            Err(error) => prop_assert!(error.contains("line"), "{error}"),
        }
    }
}

/// Ranks with unequal work that reduce after exchanges, as a solver does.
fn solver(messages: bool) -> Program {
    let mut program = Program { threads: 2, ranks: vec![Rank::default(); 4] };
    for round in 0..12u32 {
        for rank in 0..4u32 {
            let compute = 100_000 + u64::from(rank * 7_919 + round * 104_729) % 50_000;
            let steps = &mut program.ranks[rank as usize].steps;
            if messages {
                steps.push(Step { compute, call: Call::Send { to: (rank + 1) % 4, bytes: 8192 }, copy: 900 });
                steps.push(Step { compute: 0, call: Call::Receive { from: (rank + 3) % 4 }, copy: 900 });
            }
            let call = Call::Collective { kind: Collective::Allreduce, bytes: 8 };
            steps.push(Step { compute: compute / 2, call, copy: 400 });
        }
    }
    program
}

#[test]
fn more_nodes_never_take_less_time() {
    let times = |messages: bool, sizes: &[u32]| -> Vec<u64> {
        sizes.iter().map(|&nodes| run(&solver(messages), &mixed(), "tofud", nodes, 5).time).collect()
    };
    let times_of = times(false, &[1, 2, 5, 16, 64, 200]);
    assert!(times_of.is_sorted(), "{times_of:?}");
    let with_messages = times(true, &[1, 12, 64]);
    assert!(with_messages[0] <= with_messages[1] && with_messages[0] <= with_messages[2], "{with_messages:?}");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let outcomes = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| [true, false].map(|messages| run(&solver(messages), &mixed(), "tofud", 2500, 1)))
    });
    assert_eq!(outcomes[0], outcomes[1]);
}

#[test]
fn noise_is_attributed_to_the_causes_that_delayed_the_last_rank() {
    let daemons = model::parse(
        "version = 1\ntitle = \"t\"\n[[noise]]\ncause = \"tick\"\narrival = { kind = \"periodic\", period = \"100us\" }\n\
         length = { kind = \"fixed\", value = \"1us\" }\nsource = \"t\"\nevidence = \"assumed\"\n\
         [[noise]]\ncause = \"daemon\"\narrival = { kind = \"poisson\", rate = 50.0 }\n\
         length = { kind = \"fixed\", value = \"500us\" }\nsource = \"t\"\nevidence = \"assumed\"\n",
        "t",
        None,
    )
    .expect("a model");
    let outcome = run(&solver(false), &daemons, "ideal", 64, 20);
    let (lost, all) = (&outcome.lost, (outcome.time - outcome.quiet) as f64);
    assert!(((lost[0] + lost[1]) / all - 1.0).abs() < 1e-9, "{lost:?} of {all}");
    assert!(lost[1] > 50.0 * lost[0], "64 nodes wait for a daemon in most sections: {lost:?}");
}

#[test]
fn programs_without_time_or_with_too_much_are_refused() {
    let of_time = |compute: u64| {
        let call = Call::Collective { kind: Collective::Barrier, bytes: 0 };
        let program =
            Program { threads: 1, ranks: vec![Rank { steps: vec![Step { compute, call, copy: 0 }; 4], rest: 0 }] };
        let (schedule, network) =
            (Schedule::new(&program).expect("in order"), Network::load("ideal").expect("built in"));
        replay(&silent(), &of(&program, &schedule, &network, 1, 1))
    };
    assert!(of_time(0).is_err_and(|error| error.contains("takes no time")));
    assert!(of_time(80_000_000_000_000).is_err_and(|error| error.contains("a run may take 86400 s")));
    assert!(of_time(1).is_ok());
}

#[test]
fn repetitions_are_as_many_as_the_limit_allows() {
    let (program, network) = (solver(true), Network::load("tofud").expect("built in"));
    let schedule = Schedule::new(&program).expect("in order");
    let asked = of(&program, &schedule, &network, 8, 100);
    let model = mixed();
    let effort = asked.effort(&model);
    let ran = |most: f64| {
        replay_affordable(&model, &asked, most).map(|(ran, outcome)| {
            assert_eq!(outcome, replay(&model, &ran).expect("it runs"));
            ran.repetitions
        })
    };
    let few = ran(effort / 5.0).expect("some are possible");
    assert!((2..=20).contains(&few), "{few}");
    assert_eq!(ran(effort / 99.0), Ok(1), "one takes place, though noise makes it take more");
    assert_eq!(ran(effort * 100.0), Ok(100));
    let error = ran(effort / 1e4).expect_err("not even one");
    assert!(error.contains("one run of the program on 8 nodes"), "{error}");
}
