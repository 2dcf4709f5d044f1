import { render as mount } from "preact";
import { useErrorBoundary } from "preact/hooks";
import chartStyles from "uplot/dist/uPlot.min.css";
import { App } from "./App";
import { Failure } from "./components/States";
import styles from "./styles.css";
import tokens from "./tokens.css";

/** TensorBoard's entry into the tab. A rejected promise would leave it blank: what goes wrong is painted instead. */
export async function render(): Promise<void> {
  try {
    const sheet = document.createElement("style");
    sheet.textContent = [tokens, chartStyles, styles].join("\n");
    document.head.append(sheet);
    document.documentElement.lang = "en";
    document.title = "Advisor";
    mount(<Guarded />, document.body);
  } catch (error) {
    document.body.textContent = `The Advisor could not start: ${textOf(error)}`;
  }
}

function Guarded() {
  const [error, again] = useErrorBoundary();
  return error === undefined ? <App /> : <Failure message={textOf(error)} onRetry={again} />;
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
