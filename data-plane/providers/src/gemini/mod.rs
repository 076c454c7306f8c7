//! The Gemini dialect: `generateContent`, at the Gemini API and at Vertex.
