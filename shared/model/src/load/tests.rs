use super::*;
use crate::DEMO_POLICY;

#[test]
fn the_demo_policy_has_no_problems() {
    let loaded = load(DEMO_POLICY);
    assert_eq!(loaded.problems, []);
    assert!(loaded.policy.is_some());
}
