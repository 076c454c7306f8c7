//! What an answer consumed, in one form for all vendors.

/// Counts of one answer. One that the service did not state is `None`, never zero.
///
/// Normalised from what each vendor reports: `input_tokens` includes what was read from and written to a cache,
/// `output_tokens` includes reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// All input tokens, the cached ones included.
    pub input_tokens: Option<u64>,
    /// Those of them that came out of the service's prompt cache.
    pub cached_input_tokens: Option<u64>,
    /// Those of them written to the cache for five minutes (or for as long as the service likes).
    pub cache_write_tokens: Option<u64>,
    /// Those of them written to the cache for an hour.
    pub cache_write_1h_tokens: Option<u64>,
    /// All output tokens, reasoning included.
    pub output_tokens: Option<u64>,
    /// Those of them spent on reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Those of the input tokens that were audio.
    pub audio_input_tokens: Option<u64>,
    /// Those of the output tokens that were audio.
    pub audio_output_tokens: Option<u64>,
    /// Images made.
    pub images: Option<u64>,
    /// Searches done by the service on its own.
    pub searches: Option<u64>,
}

impl Usage {
    /// Takes over what a later report of the same answer says: reports are running totals, so the last value of each
    /// count wins and a missing one erases nothing.
    pub fn update(&mut self, later: Self) {
        let newer = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.cached_input_tokens, later.cached_input_tokens);
        newer(&mut self.cache_write_tokens, later.cache_write_tokens);
        newer(&mut self.cache_write_1h_tokens, later.cache_write_1h_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        newer(&mut self.reasoning_tokens, later.reasoning_tokens);
        newer(&mut self.audio_input_tokens, later.audio_input_tokens);
        newer(&mut self.audio_output_tokens, later.audio_output_tokens);
        newer(&mut self.images, later.images);
        newer(&mut self.searches, later.searches);
    }

    /// Does it say nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_totals_are_not_added_up_and_gaps_erase_nothing_met_05() {
        let mut total = Usage { input_tokens: Some(25), output_tokens: Some(1), ..Usage::default() };
        total.update(Usage { output_tokens: Some(8), ..Usage::default() });
        total.update(Usage { output_tokens: Some(15), reasoning_tokens: Some(4), ..Usage::default() });
        let expected = Usage {
            input_tokens: Some(25),
            output_tokens: Some(15),
            reasoning_tokens: Some(4),
            ..Usage::default()
        };
        assert_eq!(total, expected);
        assert!(!total.is_empty() && Usage::default().is_empty());
    }
}
