//! A cheap estimate of how many tokens a text is.
//!
//! Limits and scores need a number before the vendor counts; a real tokeniser costs a thousand times more and differs
//! per model. Rule of thumb per kind of character, in quarter tokens: four ASCII bytes make a token (OpenAI's own rule),
//! two letters of other alphabets, four thirds of a CJK character or emoji (0.6 to 0.9 tokens each in the vocabularies of
//! 2024 and later).

/// Tokens that each message costs beyond its text: role and separators (OpenAI's cookbook counts 3 to 4).
pub(crate) const PER_MESSAGE: u64 = 4;

/// Tokens of one image: a 1024-pixel square in OpenAI's high detail. What an image really costs needs its size.
pub(crate) const PER_IMAGE: u64 = 765;

/// Quarter tokens in JSON text, read as it stands between the quotes.
pub(crate) fn quarters(escaped: &str) -> u64 {
    let bytes = escaped.as_bytes();
    let plain: u64 = bytes.iter().map(|byte| weight(*byte)).sum();
    if memchr::memchr(b'\\', bytes).is_none() {
        return plain;
    }
    // `\u4f60` is six ASCII bytes for one character of weight three. Every other escape is one byte too many.
    let unicode = memchr::memmem::find_iter(bytes, b"\\u").count() as u64;
    plain.saturating_sub(3 * unicode)
}

/// Per byte, so that the loop vectorises: ASCII 1, the lead of a two-byte character 2, of a longer one 3, the rest 0.
fn weight(byte: u8) -> u64 {
    u64::from(byte < 0x80) + 2 * u64::from(byte >= 0xC0) + u64::from(byte >= 0xE0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn english_counts_four_bytes_a_token_and_chinese_three_quarters_a_character() {
        assert_eq!(quarters("four letters"), 12);
        assert_eq!(quarters("你好世界"), 12);
        assert_eq!(quarters("éé"), 4);
    }

    #[test]
    fn an_escaped_chinese_character_weighs_as_much_as_a_plain_one() {
        assert_eq!(quarters("\\u4f60\\u597d"), quarters("你好"));
    }
}
