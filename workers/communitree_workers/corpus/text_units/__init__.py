"""From documents to text units: windows of tokens, written as tables; the first task of a corpus job."""
