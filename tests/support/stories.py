"""Two small corpora of our own, one English, one Chinese, with names and topics that extraction must find."""

ENGLISH = [
    "Mara Lindqvist runs the Port Alder Harbour Authority. The Port Alder Harbour Authority owns the "
    "container terminal. "
    "In March the container terminal was closed after the storm surge. "
    "Mara Lindqvist blamed Bayline Shipping for the delay. "
    "Bayline Shipping operates nine tugboats. "
    "The tugboats could not leave the container terminal during the storm surge.",
    "Dr. Oskar Petrov studied the storm surge at the University of Tallow. "
    "He said the sea wall was too low. "
    "The sea wall protects the container terminal and the fish market. Oskar Petrov warned Mara Lindqvist twice. "
    "The University of Tallow measured the storm surge at the fish market.",
    "Bayline Shipping and the Port Alder Harbour Authority agreed on a new sea wall. The fish market will move. "
    "Tugboats of Bayline Shipping will carry the stones of the sea wall. "
    "Mara Lindqvist signed the agreement. She thanked the tugboats.",
]

CHINESE = [
    "　　王晓明是上海港务集团的总工程师。上海港务集团管理集装箱码头。台风来的时候，集装箱码头关闭了三天。"
    "王晓明说，防波堤太低。李建国不同意王晓明的意见。",
    "　　李建国在清华大学研究台风。清华大学的报告认为防波堤可以加高。李建国把报告交给上海港务集团。"
    "台风过后，集装箱码头重新开放。王晓明感谢李建国。",
]
