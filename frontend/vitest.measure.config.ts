import { defineConfig } from "vitest/config";

export default defineConfig({ test: { include: ["e2e/**/*.bench.ts"], hookTimeout: 120_000 } });
