"""What is tested: clients, providers, what is impossible and why, and the page that tells the outcome."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Provider:
    # In the matrix and in names of models.
    name: str
    title: str
    # Of the simulated service.
    dialect: str
    # Of Penstock's policy.
    vendor: str
    base_path: str = ""
    # What it speaks itself, so that clients can call it without Penstock too.
    protocols: tuple[str, ...] = ()
    credential: str = "CONFORMANCE_KEY"
    backend: dict = dataclasses.field(default_factory=dict)
    model: dict = dataclasses.field(default_factory=dict)


CLIENTS = [
    "openai_chat.py", "openai_responses.py", "anthropic_messages.py", "gemini_generate.py", "openai_chat.mjs",
    "anthropic_messages.mjs", "vercel.mjs",
]

PROVIDERS = [
    Provider("openai", "OpenAI", "openai-strict", "openai", "/v1", ("chat", "responses")),
    Provider("openai-compatible", "OpenAI-compatible", "openai", "openai-compatible", "/v1", ("chat",)),
    Provider("azure-openai", "Azure OpenAI", "azure-openai", "azure-openai"),
    Provider("anthropic", "Anthropic", "anthropic", "anthropic", "/v1", ("messages",)),
    Provider("gemini", "Gemini API", "gemini", "gemini", "/v1beta", ("generate",)),
    Provider("bedrock", "Bedrock", "bedrock", "bedrock", credential="CONFORMANCE_AWS"),
    Provider("cohere", "Cohere", "cohere", "cohere"),
    Provider("dashscope", "DashScope", "dashscope", "dashscope", "/api/v1"),
    Provider("ollama", "Ollama", "ollama", "ollama", credential=""),
]

# (protocol, provider, feature) that cannot be, and why. `*` stands for any. The client gets a clear error then.
IMPOSSIBLE = {
    ("chat", "openai", "reasoning"): "OpenAI's chat completions do not tell their reasoning",
}

PROTOCOLS = {}


def page(results):
    return ""
