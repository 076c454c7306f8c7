//! Tells the tool calls of a stream apart.
//!
//! Fragments say by `index` which call they belong to. Some services number every call 0, or none; some repeat the id
//! with every fragment, and some give none at all (SSE-06). A new id starts a new call, whatever the index says, and so
//! does a name when the call before it is complete.

/// Most calls of one choice that are told apart; what comes after belongs to the last.
const MAX_CALLS: usize = 1024;

/// The calls of one choice, in the order of their beginnings.
#[derive(Debug, Default)]
pub(crate) struct Calls(Vec<Call>);

#[derive(Debug)]
struct Call {
    /// As the service numbers it.
    index: Option<u64>,
    /// As it has to be numbered.
    number: u64,
    /// Empty when the service gives none.
    id: Box<str>,
    arguments: Balance,
}

/// What a fragment says of the call that it belongs to. Empty strings say nothing and are `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: Option<&'a str>,
}

impl Calls {
    /// Which call a fragment belongs to, counted from 0; the next when it starts one. `None` when it belongs to none and
    /// starts none.
    pub(crate) fn place(&mut self, fragment: Fragment<'_>) -> Option<usize> {
        let at = match self.find(fragment) {
            Some(at) => at,
            None if fragment.id.is_none() && fragment.name.is_none() => return None,
            None if self.0.len() == MAX_CALLS => MAX_CALLS - 1,
            None => {
                let number = self.free_number(fragment.index);
                let id = fragment.id.unwrap_or_default().into();
                self.0.push(Call { index: fragment.index, number, id, arguments: Balance::default() });
                self.0.len() - 1
            }
        };
        self.0[at].arguments.see(fragment.arguments.unwrap_or_default());
        Some(at)
    }

    /// The number of a call: the service's own index unless another call has it.
    pub(crate) fn number(&self, at: usize) -> u64 {
        self.0[at].number
    }

    fn find(&self, fragment: Fragment<'_>) -> Option<usize> {
        let same_index = |call: &Call| fragment.index.is_none() || call.index == fragment.index;
        if let Some(id) = fragment.id {
            return self.0.iter().rposition(|call| *call.id == *id && same_index(call));
        }
        let at = self.0.iter().rposition(same_index)?;
        let starts = fragment.name.is_some() && self.0[at].arguments.closed;
        (!starts).then_some(at)
    }

    fn free_number(&self, wanted: Option<u64>) -> u64 {
        let taken = |number: u64| self.0.iter().any(|call| call.number == number);
        let next = || self.0.iter().map(|call| call.number.saturating_add(1)).max().unwrap_or(0);
        wanted.filter(|index| !taken(*index)).unwrap_or_else(next)
    }
}

/// Whether a JSON object that comes in pieces is complete.
#[derive(Debug, Default)]
struct Balance {
    depth: u32,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Balance {
    fn see(&mut self, fragment: &str) {
        for byte in fragment.bytes() {
            match (byte, self.in_string) {
                _ if self.escaped => self.escaped = false,
                (b'\\', true) => self.escaped = true,
                (b'"', _) => self.in_string = !self.in_string,
                (b'{' | b'[', false) => self.depth += 1,
                (b'}' | b']', false) => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_that_are_free_stay_and_others_get_the_next_number_sse_06() {
        let mut calls = Calls::default();
        let mut number = |index, id| {
            let at = calls.place(Fragment { index, id: Some(id), name: None, arguments: None }).unwrap();
            calls.number(at)
        };
        assert_eq!(number(Some(1), "a"), 1, "numbers need not begin at 0");
        assert_eq!(number(Some(1), "a"), 1);
        assert_eq!(number(Some(1), "b"), 2);
        assert_eq!(number(Some(2), "c"), 3);
        assert_eq!(number(Some(0), "d"), 0);
        assert_eq!(number(None, "e"), 4);
    }

    #[test]
    fn the_number_of_calls_is_bounded() {
        let mut calls = Calls::default();
        for call in 0..5000_u64 {
            let id = call.to_string();
            calls.place(Fragment { index: None, id: Some(&id), name: None, arguments: None });
        }
        assert_eq!(calls.0.len(), MAX_CALLS);
    }
}
