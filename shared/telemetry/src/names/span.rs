//! Names of spans and of who sends them.

/// `service.name` of a proxy.
pub const SERVICE_PROXY: &str = "penstock-proxy";
/// `service.name` of a control plane.
pub const SERVICE_CONTROL: &str = "penstock-control";

/// Name of a GenAI span: `chat gpt-4o-mini`, or the operation alone when there is no model.
#[must_use]
pub fn name(operation: &str, model: &str) -> String {
    if model.is_empty() { operation.to_owned() } else { format!("{operation} {model}") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_span_is_named_by_operation_and_model() {
        assert_eq!(super::name("chat", "gpt-4o-mini"), "chat gpt-4o-mini");
        assert_eq!(super::name("chat", ""), "chat");
    }
}
