//! The textual form of plans.

use fxscope_sampling::{Follow, Plan};
use proptest::prelude::*;

fn error(text: &str) -> String {
    text.parse::<Plan>().expect_err(text).to_string()
}

#[test]
fn auto_and_partial_texts_have_defaults() {
    assert_eq!("auto".parse(), Ok(Plan::auto()));
    assert_eq!("window=2000,period=90000".parse(), Ok(Plan { window: 2_000, period: 90_000, ..Plan::default() }));
    assert_eq!("auto, seed=7".parse(), Ok(Plan { seed: 7, ..Plan::auto() }));
    assert_eq!("follow=all".parse(), Ok(Plan { follow: Follow::All, ..Plan::default() }));
    assert_eq!("auto,follow=500".parse(), Ok(Plan { follow: Follow::Instructions(500), ..Plan::auto() }));
    assert_eq!("warm=0,rare=0".parse(), Ok(Plan { warm: 0, rare: 0, ..Plan::default() }));
}

#[test]
fn a_text_that_is_not_a_plan_is_named_with_what_to_write() {
    assert!(error("windows=5").contains("no parameter 'windows'; write auto, or begin=, window="));
    assert!(error("").contains("no parameter ''"));
    assert!(error("window").contains("'window' has no value; write window=NUMBER"));
    assert!(error("auto=1").contains("'auto' takes no value, not '1'; write auto"));
    assert!(error("period=50k").contains("period=50k is not a whole number; write digits only, as in period=50000"));
    assert!(error("warm=-1").contains("warm=-1 is not a whole number"));
    assert!(error("keep=3,keep=4").contains("'keep' occurs twice"));
    assert!(error("follow=some").contains("follow=some is neither 'auto' or 'all' nor a whole number"));
    assert!(error("follow").contains("'follow' has no value"));
    assert!(error("window=0").contains("window=0 is out of range; write a number from 1 to"));
    assert!(error("keep=10000000").contains("from 1 to 1000000"));
    assert!(error("window=5000,warm=500,period=5500").contains("write a period greater than 5500"));
}

proptest! {
    #[test]
    fn plans_survive_their_textual_form(
        auto: bool,
        (begin, window, warm, gap) in (0..1_000_000_u64, 1..1_000_000_u64, 0..1_000_000_u64, 1..1_000_000_000_u64),
        (keep, rare, seed) in (1..=1_000_000_u64, 0..1_000_000_u64, any::<u64>()),
        follow in prop_oneof![
            Just(Follow::All),
            Just(Follow::Auto),
            (0..1_000_000_000_u64).prop_map(Follow::Instructions),
        ],
    ) {
        let plan = Plan { auto, begin, window, warm, period: window + warm + gap, keep, rare, follow, seed };
        prop_assert_eq!(plan.to_string().parse(), Ok(plan));
    }

    #[test]
    fn any_text_is_a_plan_or_an_error(text in "(auto|all|begin|window|warm|period|keep|rare|follow|seed|=|,|[0-9 ]|.){0,12}") {
        if let Ok(plan) = text.parse::<Plan>() {
            prop_assert!(plan.window + plan.warm < plan.period);
        }
    }
}
