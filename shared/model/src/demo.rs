//! The policy that `penstock up` starts with.

/// Three capabilities with two simulated services each, at `http://127.0.0.1:18081/v1` and the five ports after it.
pub const DEMO_POLICY: &str = include_str!("../demo.yaml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Policy;

    fn demo() -> Policy {
        crate::load(DEMO_POLICY).policy.unwrap()
    }

    /// The capabilities whose keywords stand in `prompt`, by plain search.
    fn claimed(prompt: &str) -> Vec<String> {
        let prompt = prompt.to_lowercase();
        let claims = |keywords: &[String]| keywords.iter().any(|keyword| prompt.contains(keyword.as_str()));
        demo().capabilities.into_iter().filter(|c| claims(&c.keywords)).map(|c| c.name).collect()
    }

    #[test]
    fn the_demo_prompts_are_told_apart_by_keywords() {
        assert_eq!(claimed("帮我写一个快速排序算法"), ["code"]);
        assert_eq!(claimed("请总结这篇文章的核心要点"), ["summarize"]);
        assert_eq!(claimed("你好今天天气怎么样"), [""; 0]);
    }

    #[test]
    fn no_keyword_claims_an_example_of_another_capability() {
        for capability in demo().capabilities {
            assert!(capability.examples.len() >= 40, "{}", capability.name);
            for example in &capability.examples {
                let claimed = claimed(example);
                assert!(
                    claimed.is_empty() || claimed == [capability.name.as_str()],
                    "{example}: {claimed:?}"
                );
            }
        }
    }

    #[test]
    fn each_capability_has_two_services_in_two_zones_at_ports_of_their_own() {
        let policy = demo();
        for capability in ["chat", "code", "summarize"] {
            let pool = policy.find_pool("default", capability).unwrap();
            let backends: Vec<_> = policy.pools[pool.index()]
                .candidates
                .iter()
                .map(|candidate| &policy.backends[policy.targets[candidate.target.index()].backend.index()])
                .collect();
            let names: Vec<_> = backends.iter().map(|backend| backend.name.clone()).collect();
            assert_eq!(names, [format!("{capability}-a"), format!("{capability}-b")]);
            assert_ne!(backends[0].zone, backends[1].zone);
        }
        // `up` puts its own ports in place of these lines.
        for port in 18081..=18086 {
            assert_eq!(
                DEMO_POLICY.matches(&format!("    base_url: http://127.0.0.1:{port}/v1\n")).count(),
                1
            );
        }
        assert_eq!(DEMO_POLICY.matches("base_url:").count(), 6);
    }
}
