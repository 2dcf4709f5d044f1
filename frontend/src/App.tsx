import { useEffect, useState } from "preact/hooks";
import { fetchReport, type Reading } from "./api";
import { entriesOf, worstFirst } from "./report";

export function App() {
  const [reading, setReading] = useState<Reading | null>(null);
  useEffect(() => {
    void fetchReport(0, false).then(setReading);
  }, []);
  const entries = reading?.report ? worstFirst(entriesOf(reading.report)) : [];
  return (
    <ul>
      {entries.map((entry) => (
        <li key={entry.name}>
          {entry.name}: {entry.shown.map((finding) => finding.diagnosis.summary).join(" ") || entry.standing}
        </li>
      ))}
    </ul>
  );
}
