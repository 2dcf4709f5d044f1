const NAMES: Readonly<Record<string, string>> = {
  keras: "Keras",
  tensorflow: "TensorFlow",
  pytorch: "PyTorch",
  lightning: "Lightning",
  huggingface: "Hugging Face",
  jax: "JAX",
  estimator: "Estimator",
  "stable-baselines3": "Stable-Baselines3",
};

/** A framework as it writes itself. */
export function writerName(writer: string): string {
  return NAMES[writer] ?? writer;
}
