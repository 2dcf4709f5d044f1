import { defineConfig } from "vitest/config";

// One browser and one TensorBoard after the other: the machine may have two cores only.
export default defineConfig({
  test: {
    expect: { poll: { timeout: 10_000 } },
    include: ["e2e/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    fileParallelism: false,
    retry: 1, // two cores run a browser, two servers and the tests: a try that starved is made again, and said to be
  },
});
