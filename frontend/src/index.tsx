import { render as mount } from "preact";
import chartStyles from "uplot/dist/uPlot.min.css";
import { App } from "./App";
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
    mount(<App />, document.body);
  } catch (error) {
    document.body.textContent = `The Advisor could not start: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}
